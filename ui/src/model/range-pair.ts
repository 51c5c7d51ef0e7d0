// Two ranges that are marked to be compared: the earlier one is what was before.

import type { TimeRange } from "./time-range.ts";

export interface RangePair {
  before: TimeRange;
  after: TimeRange;
}

/** With another range marked: a third one begins anew. */
export function withMark(marks: readonly TimeRange[], range: TimeRange): TimeRange[] {
  if (!(range.to > range.from)) return [...marks];
  return marks.length === 1 ? [...marks, range] : [range];
}

/** One mark alone is compared with what is looked at. */
export function pairOf(marks: readonly TimeRange[], shown: TimeRange): RangePair | undefined {
  const [first, second] = marks;
  if (!first) return undefined;
  if (!second) return { before: first, after: shown };
  return first.from <= second.from ? { before: first, after: second } : { before: second, after: first };
}
