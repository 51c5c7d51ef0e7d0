// Which row of the code is chosen, and what one can step to: matches of the search, else hot lines.

import { computed, signal } from "@preact/signals";
import { hotRows, matchingRows, nextRow, rowOfLine, type CodeRow } from "../../model/source-rows.ts";
import { listPattern } from "../highlight.ts";

export interface ShownCode {
  rows: readonly CodeRow[];
  /** Total of the function. */
  whole: number;
  hottestLine: number;
}

export const shownCode = signal<ShownCode>({ rows: [], whole: 0, hottestLine: 0 });
export const chosenRow = signal(-1);
/** Counts wishes to see the chosen row, which may be the same one again. */
export const reveals = signal(0);

export const matches = computed(() => {
  const pattern = listPattern.value;
  return pattern ? matchingRows(shownCode.value.rows, pattern.expression) : [];
});

export function choose(row: number): void {
  chosenRow.value = Math.max(0, Math.min(shownCode.peek().rows.length - 1, row));
  reveals.value++;
}

export function stepCode(direction: 1 | -1): void {
  const { rows, whole } = shownCode.peek();
  const steps = listPattern.peek() ? matches.peek() : hotRows(rows, whole);
  const next = nextRow(steps, chosenRow.peek(), direction);
  if (next !== undefined) choose(next);
}

export function goToHottest(): void {
  const { rows, hottestLine } = shownCode.peek();
  const row = rowOfLine(rows, hottestLine);
  if (row >= 0) choose(row);
}
