// Ticks of an axis of time that may be hours or microseconds wide.

const STEPS_MILLISECONDS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3,
  300e3, 600e3, 900e3, 1800e3, 3600e3, 7200e3, 14_400e3, 43_200e3, 86_400e3,
];

/** Unix milliseconds of round times, so many at most. */
export function timeTicks(from: number, to: number, most: number): { times: number[]; step: number } {
  const finest = (to - from) / Math.max(1, most);
  const step = STEPS_MILLISECONDS.find((candidate) => candidate >= finest) ?? Math.ceil(finest / 86_400e3) * 86_400e3;
  const times: number[] = [];
  for (let tick = Math.ceil(from / step); tick * step < to && times.length < most + 1; tick++) times.push(tick * step);
  return { times, step };
}

/** A length of time in the unit that fits it: `1.5 ms`, `20 µs`, `2.25 s`. */
export function formatLength(milliseconds: number): string {
  const [value, unit] =
    milliseconds >= 1e3 ? [milliseconds / 1e3, "s"] : milliseconds >= 1 ? [milliseconds, "ms"] : [milliseconds * 1e3, "µs"];
  return `${Number(value.toPrecision(value >= 100 ? 4 : 3))} ${unit}`;
}
