// Where a change went: the change of a node is exactly that of its own value and those of its children, so it can be followed down
// to the place that makes it.

import { NONE, type FlameTree } from "./flame-tree.ts";
import type { ComparedTree } from "./comparison.ts";

/** What a node's change is made of. */
export interface ChangePart {
  /** `NONE` for what is no child that is drawn: see `of`. */
  node: number;
  /** Its own value, a child's total, or that of the children that only the side without width has. */
  of: "self" | "child" | "unseen";
  before: number;
  after: number;
}

/** So much of a change explains it. */
const MOST_OF_IT = 0.8;

/** Of both sides as they are drawn. */
type Sides = Pick<ComparedTree, "before" | "after"> & { tree: Pick<FlameTree, "children"> };

/** The parts of this node's change, the largest first, those that did not change left out. Their sum is the node's change. */
export function changeParts({ tree, before, after }: Sides, node: number): ChangePart[] {
  const children = tree.children(node).map((child): ChangePart => ({ node: child, of: "child", before: before.total[child], after: after.total[child] }));
  const self: ChangePart = { node: NONE, of: "self", before: before.self[node], after: after.self[node] };
  const rest = { before: before.total[node] - self.before, after: after.total[node] - self.after };
  for (const child of children) {
    rest.before -= child.before;
    rest.after -= child.after;
  }
  const parts = [self, ...children];
  // Each value was rounded once when it was scaled: what that leaves is nobody's change.
  if (Math.max(Math.abs(rest.before), Math.abs(rest.after)) > parts.length) parts.push({ node: NONE, of: "unseen", ...rest });
  return parts.filter((part) => changeOf(part) !== 0).toSorted((left, right) => Math.abs(changeOf(right)) - Math.abs(changeOf(left)));
}

/** The deepest node below this one, or the node itself, that alone makes most of its change. */
export function explainingNode({ tree, before, after }: Sides, node: number): number {
  const change = after.total[node] - before.total[node];
  if (change === 0) return node;
  const explains = (child: number): boolean => (after.total[child] - before.total[child]) / change >= MOST_OF_IT;
  let deepest = node;
  // At most one child has so much of it, unless others took as much away: the one with the most is followed.
  for (;;) {
    const candidates = tree.children(deepest).filter(explains);
    if (candidates.length === 0) return deepest;
    deepest = candidates.reduce((most, child) =>
      Math.abs(after.total[child] - before.total[child]) > Math.abs(after.total[most] - before.total[most]) ? child : most,
    );
  }
}

export function changeOf({ before, after }: Pick<ChangePart, "before" | "after">): number {
  return after - before;
}
