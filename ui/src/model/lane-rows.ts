// Where lanes stand below each other: a row for the name of each, then as many rows of boxes as it is open.

import { NONE, ROOT, type FlameTree } from "./flame-tree.ts";
import type { Lane } from "./chart.ts";

export interface PlacedLane {
  lane: Lane;
  /** Position among the lanes that are shown. */
  index: number;
  isOpen: boolean;
  /** Of the name. */
  headRow: number;
  /** How many rows of boxes, and the depth of the first one. */
  depth: number;
  first: number;
}

/** What a row of the picture is. */
export type RowPlace = { placed: PlacedLane; depth: number } | undefined;

/** Which rows of lanes are shown: so many, from a depth on. */
export interface LaneWindow {
  first: number;
  most: number;
}

export function placeLanes(lanes: readonly Lane[], isOpen: (lane: Lane) => boolean, window: LaneWindow): PlacedLane[] {
  let row = 0;
  return lanes.map((lane, index) => {
    const open = isOpen(lane);
    // A lane of shallow stacks is not empty: what is left of it are its last rows.
    const first = open ? Math.max(0, Math.min(window.first, lane.rows.length - 1)) : 0;
    const depth = open ? Math.min(window.most, lane.rows.length - first) : 0;
    const placed = { lane, index, isOpen: open, headRow: row, depth, first };
    row += 1 + depth;
    return placed;
  });
}

/** The row of the picture in which the boxes of a depth are. */
export function rowOfDepth({ headRow, first }: PlacedLane, depth: number): number {
  return headRow + 1 + depth - first;
}

/** From here on stacks differ: above, nearly all of them are the same functions, which tell nothing of time. */
const SAME_FOR_NEARLY_ALL = 0.85;

export function firstTellingDepth(tree: FlameTree): number {
  let node = ROOT;
  for (let depth = 0; ; depth++) {
    const heaviest = tree.firstChild(node);
    if (heaviest === NONE || tree.total[heaviest] < SAME_FOR_NEARLY_ALL * tree.rootTotal) return Math.max(0, depth - 1);
    node = heaviest;
  }
}

export function rowCount(placed: readonly PlacedLane[]): number {
  const last = placed[placed.length - 1];
  return last ? last.headRow + 1 + last.depth : 0;
}

/** The lane of a row, and the row's depth in it; `NONE` for that of its name. */
export function placeOfRow(placed: readonly PlacedLane[], row: number): RowPlace {
  let low = 0;
  let high = placed.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (placed[middle].headRow <= row) low = middle + 1;
    else high = middle;
  }
  const at = placed[low - 1];
  if (!at || row > at.headRow + at.depth) return undefined;
  return { placed: at, depth: row === at.headRow ? NONE : at.first + row - at.headRow - 1 };
}

/** The lanes whose names have all the words, in any order. */
export function filterLanes(lanes: readonly Lane[], text: string): Lane[] {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return lanes.filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)));
}
