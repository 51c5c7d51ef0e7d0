// What a selection is compared with when nobody has said so, and the usual choices.

import { resolveTime, type TimeRange } from "./time-range.ts";

export interface BaseTimes {
  baseFrom: string;
  baseTo: string;
}

export interface BasePreset {
  title: string;
  /** Milliseconds between both ranges; `undefined` is the length of the range: the one just before. */
  distance: number | undefined;
}

const DAY = 86_400e3;

export const BASE_PRESETS: readonly BasePreset[] = [
  { title: "the range before", distance: undefined },
  { title: "a day earlier", distance: DAY },
  { title: "a week earlier", distance: 7 * DAY },
];

/** The range of the base; that just before `shown` where the texts say none. `undefined` when a text is no time. */
export function baseRange({ baseFrom, baseTo }: BaseTimes, shown: TimeRange, now: number): TimeRange | undefined {
  if (baseFrom === "" && baseTo === "") return { from: 2 * shown.from - shown.to, to: shown.from };
  const from = resolveTime(baseFrom === "" ? String(2 * shown.from - shown.to) : baseFrom, now);
  const to = resolveTime(baseTo === "" ? String(shown.from) : baseTo, now);
  return from === undefined || to === undefined || from >= to ? undefined : { from, to };
}

/** The texts of a preset: fixed times, but for the range before, which moves with the other. */
export function presetTimes({ distance }: BasePreset, shown: TimeRange): BaseTimes {
  if (distance === undefined) return { baseFrom: "", baseTo: "" };
  return { baseFrom: String(Math.round(shown.from - distance)), baseTo: String(Math.round(shown.to - distance)) };
}
