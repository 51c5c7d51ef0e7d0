// Ranges marked on the series or the heatmap, to be compared with each other.

import { computed, signal } from "@preact/signals";
import { pairOf, withMark } from "../model/range-pair.ts";
import type { TimeRange } from "../model/time-range.ts";
import { range, update } from "./store.ts";

export const marks = signal<readonly TimeRange[]>([]);

export const markedPair = computed(() => pairOf(marks.value, range.value));

export function markRange(marked: TimeRange): void {
  marks.value = withMark(marks.peek(), marked);
}

export function clearMarks(): void {
  marks.value = [];
}

export function compareMarks(): void {
  const pair = markedPair.peek();
  if (!pair) return;
  const { before, after } = pair;
  clearMarks();
  update({
    screen: "compare",
    from: String(after.from),
    to: String(after.to),
    baseQuery: "",
    baseFrom: String(before.from),
    baseTo: String(before.to),
    zoom: "",
  });
}
