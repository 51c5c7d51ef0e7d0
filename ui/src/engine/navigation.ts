// From node to node with the keyboard. "Deeper" follows the heaviest child, which is the way to the cost.

import { NONE, ROOT, type FlameTree } from "../model/flame-tree.ts";
import type { Span } from "./camera.ts";

export type Move = "deeper" | "shallower" | "left" | "right";

/** The node one step away, or the same node where there is none. */
export function step(tree: FlameTree, from: number, move: Move, view: Span): number {
  switch (move) {
    case "deeper":
      return deeper(tree, from, view);
    case "shallower":
      return from === ROOT ? ROOT : tree.parent[from];
    case "left":
    case "right":
      return alongRow(tree, from, move === "right" ? 1 : -1, view);
  }
}

/** The heaviest child that the view shows: with the view in the middle of a wide node the first child may be far outside. */
function deeper(tree: FlameTree, from: number, view: Span): number {
  for (let child = tree.firstChild(from); child !== NONE; child = tree.nextSibling(child)) {
    if (tree.start[child] + tree.total[child] > view.left && tree.start[child] < view.right) return child;
  }
  return from;
}

/** The neighbour in the same row, also across parents, as far as the view reaches. */
function alongRow(tree: FlameTree, from: number, direction: 1 | -1, view: Span): number {
  const row = tree.depth[from];
  const position = positionInRow(tree, from);
  const next = position + direction;
  if (next < tree.rowOffset[row] || next >= tree.rowOffset[row + 1]) return from;
  const node = tree.rowNodes[next];
  const isSeen = tree.start[node] + tree.total[node] > view.left && tree.start[node] < view.right;
  return isSeen ? node : from;
}

/** Pre-order numbers grow along a row: a binary search. */
function positionInRow(tree: FlameTree, node: number): number {
  let low = tree.rowOffset[tree.depth[node]];
  let high = tree.rowOffset[tree.depth[node] + 1] - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (tree.rowNodes[middle] < node) low = middle + 1;
    else high = middle;
  }
  return low;
}
