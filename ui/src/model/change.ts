// How a value changed, for colours and in words.

import { formatChange, formatShare, formatValue } from "./units.ts";

/** Steps of colour on each side of none. */
export const CHANGE_LEVELS = 5;

/** From what shrank most, `-CHANGE_LEVELS`, to what grew most. What changed at all is told from what did not. */
export function changeLevel(before: number, after: number, largestChange: number): number {
  if (before === after || !(largestChange > 0)) return 0;
  const level = Math.ceil((CHANGE_LEVELS * Math.abs(after - before)) / largestChange);
  return Math.sign(after - before) * Math.min(CHANGE_LEVELS, level);
}

export type Presence = "new" | "gone" | "both";

export function presence(before: number, after: number): Presence {
  if (before === after) return "both";
  if (before === 0) return "new";
  return after === 0 ? "gone" : "both";
}

/** `+1.20 s`, `−30`, `±0`. */
export function formatDifference(before: number, after: number, unit: string): string {
  if (before === after) return "±0";
  return signOf(before, after) + formatValue(Math.abs(after - before), unit);
}

/** Of what it was before: `+12 %`, `×4.2`, `new`, `gone`. */
export function formatRelative(before: number, after: number): string {
  return presence(before, after) === "gone" ? "gone" : formatChange(after, before);
}

/** The change as a part of a whole: `+2.1 %`, `−0.4 %`. */
export function formatDifferenceShare(before: number, after: number, whole: number): string {
  if (before === after || !(whole > 0)) return formatShare(0, whole);
  return signOf(before, after) + formatShare(Math.abs(after - before), whole);
}

function signOf(before: number, after: number): string {
  return after > before ? "+" : "−";
}
