// What was typed, in what there is: all letters in their order, better where they begin words and stand together.

/** Higher is better; `undefined` where a letter is missing. An empty text matches everything alike. */
export function fuzzyScore(typed: string, text: string): number | undefined {
  const wanted = typed.toLowerCase().replaceAll(/\s+/g, "");
  const letters = text.toLowerCase();
  const whole = wanted === "" ? 0 : letters.indexOf(wanted);
  if (whole !== -1) return 1000 - Math.min(500, whole) - Math.min(400, letters.length) / 10;
  let score = 0;
  let from = 0;
  let previous = -2;
  for (const letter of wanted) {
    const at = letters.indexOf(letter, from);
    if (at === -1) return undefined;
    if (at === previous + 1) score += 6;
    else if (at === 0 || /[^\p{L}\p{N}]/u.test(letters[at - 1])) score += 4;
    else score -= Math.min(3, at - previous);
    previous = at;
    from = at + 1;
  }
  return score - letters.length / 50;
}

/** The best first, those that match alike in their own order; at most so many. */
export function fuzzyFind<T>(typed: string, entries: readonly T[], textOf: (entry: T) => string, limit: number): T[] {
  const scored = entries.flatMap((entry, place) => {
    const score = fuzzyScore(typed, textOf(entry));
    return score === undefined ? [] : [{ entry, score, place }];
  });
  scored.sort((left, right) => right.score - left.score || left.place - right.place);
  return scored.slice(0, limit).map(({ entry }) => entry);
}
