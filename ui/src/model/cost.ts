// What a total comes to: a rate over the time in which it was profiled, or the total itself where that is not known.

import { isCpuTime, isGauge } from "./profile-type.ts";
import { formatRate, formatValue } from "./units.ts";

/** What answers say of the time that their profiles took. */
export interface ProfiledTime {
  profiled_ms?: number | null | undefined;
}

/** The seconds that a total was profiled in; `undefined` where no profile says how long it took. */
export function profiledSeconds({ profiled_ms: milliseconds }: ProfiledTime): number | undefined {
  return milliseconds ? milliseconds / 1e3 : undefined;
}

/** A total, and the seconds that it was profiled in where that is known. */
export interface Spent {
  total: number;
  seconds: number | undefined;
}

/** What is spent a second, in this range and in the one before. Levels are compared as they are. */
export interface Pace {
  now: number;
  before: number;
}

const NOTHING: Spent = { total: 0, seconds: undefined };

/** `undefined` where only one of both is a rate: a total cannot be compared with it. Nothing is nothing in both. */
export function paceBetween(type: string, now: Spent, before: Spent = NOTHING): Pace | undefined {
  if (isGauge(type)) return { now: now.total, before: before.total };
  const haveBoth = now.total !== 0 && before.total !== 0;
  if (haveBoth && (now.seconds === undefined) !== (before.seconds === undefined)) return undefined;
  return { now: now.total / (now.seconds ?? 1), before: before.total / (before.seconds ?? 1) };
}

/** A total in words: `0.42 cores`, `3.1 MiB/s`, `12 goroutines`. */
export function formatCost(total: number, { type, unit }: { type: string; unit: string }, seconds: number | undefined): string {
  if (isGauge(type) || seconds === undefined) return formatValue(total, unit);
  return formatRate(total / seconds, unit, isCpuTime(type));
}
