// When a wait is worth a word, and what would be sooner.

import { isRelative, resolveTime } from "./time-range.ts";

/** Below this a word would only flicker. */
export const ASKED_PATIENCE_MILLISECONDS = 1000;
/** What is on the screen answers the question already: a refresh that is a little slow disturbs nobody. */
export const REFRESH_PATIENCE_MILLISECONDS = 5000;

/** How long the longest wait that is worth a word has lasted; `undefined` without one. */
export function longWait(waits: readonly { since: number; isAsked: boolean }[], now: number): number | undefined {
  const long = waits
    .filter(({ since, isAsked }) => now - since >= (isAsked ? ASKED_PATIENCE_MILLISECONDS : REFRESH_PATIENCE_MILLISECONDS))
    .map(({ since }) => now - since);
  return long.length === 0 ? undefined : Math.max(...long);
}

/** "the flame graph, the functions and 2 more". */
export function namesOf(waits: readonly { what: string }[]): string {
  const names = [...new Set(waits.map(({ what }) => what))];
  if (names.length <= 1) return names.join("");
  if (names.length === 2) return names.join(" and ");
  return `${names.slice(0, 2).join(", ")} and ${names.length - 2} more`;
}

const SHORTER: readonly [text: string, minutes: number][] = [
  ["7d", 7 * 24 * 60],
  ["1d", 24 * 60],
  ["6h", 6 * 60],
  ["1h", 60],
  ["15m", 15],
  ["5m", 5],
];
/** Hardly shorter is hardly sooner. */
const SHORTER_BY = 3;

/** The end of a range: what costs less to answer. `undefined` when the range is short already, or none. */
export function shorterRange(from: string, to: string, now: number): { from: string; length: string } | undefined {
  const [start, end] = [resolveTime(from, now), resolveTime(to, now)];
  if (start === undefined || end === undefined) return undefined;
  const [length, minutes] = SHORTER.find(([, long]) => long * 60e3 * SHORTER_BY <= end - start) ?? [];
  if (length === undefined || minutes === undefined) return undefined;
  return { from: isRelative(to) && to === "now" ? `now-${length}` : String(Math.round(end - minutes * 60e3)), length };
}
