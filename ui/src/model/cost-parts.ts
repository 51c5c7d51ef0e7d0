// One tree told apart: what of each node's cost is of which part (a reason to wait, on the CPU or off it). The parts are trees of
// their own, asked for one by one, and joined here by their paths.

import { NONE, ROOT, type FlameTree } from "./flame-tree.ts";

export interface Part {
  /** Stable: a reason's name, or `cpu`. */
  name: string;
  tree: FlameTree;
}

/** Values of the parts at each node of one tree. */
export interface CostParts {
  tree: FlameTree;
  names: readonly string[];
  /** One column a part, one entry a node. */
  values: readonly Float64Array[];
}

export interface PartShare {
  /** `undefined` for what no part has. */
  name: string | undefined;
  value: number;
}

export function costParts(tree: FlameTree, parts: readonly Part[]): CostParts {
  return {
    tree,
    names: parts.map(({ name }) => name),
    values: parts.map((part) => valuesOf(tree, part.tree)),
  };
}

/** What a node is made of, the largest first, with what no part has. */
export function mixOf({ tree, names, values }: CostParts, node: number): PartShare[] {
  const mix: PartShare[] = names.map((name, part) => ({ name, value: values[part][node] }));
  const known = mix.reduce((sum, { value }) => sum + value, 0);
  mix.push({ name: undefined, value: Math.max(0, tree.total[node] - known) });
  return mix.filter(({ value }) => value > 0).toSorted((left, right) => right.value - left.value);
}

/** The part that has most of a node, `NONE` when that is what no part has; in second place what has most of the rest. */
export interface Leading {
  first: number;
  /** `NONE` while nothing else has a tenth of the node. */
  second: number;
}

const WORTH_A_FOOT = 0.1;

/** Without a list for each node: a picture asks for some thousand of them in a frame. */
export function leadingParts({ tree, values }: CostParts, node: number): Leading {
  let first = NONE;
  let second = NONE;
  let known = 0;
  for (let part = 0; part < values.length; part++) {
    const value = values[part][node];
    known += value;
    if (first === NONE || value > values[first][node]) {
      second = first;
      first = part;
    } else if (second === NONE || value > values[second][node]) second = part;
  }
  const rest = tree.total[node] - known;
  if (first === NONE || values[first][node] === 0 || rest > values[first][node]) return { first: NONE, second: NONE };
  const isWorthIt = second !== NONE && values[second][node] >= WORTH_A_FOOT * tree.total[node];
  return { first, second: isWorthIt ? second : NONE };
}

/** Of each node of `tree` the value that `part` has on the same path; 0 where it has none. */
function valuesOf(tree: FlameTree, part: FlameTree): Float64Array {
  const values = new Float64Array(tree.length);
  if (tree.length === 0 || part.length === 0) return values;
  const frameOf = sharedFrames(tree, part);
  const pairs: number[] = [ROOT, ROOT];
  const childWith = new Map<number, number>();
  while (pairs.length > 0) {
    const partNode = pairs.pop() ?? ROOT;
    const node = pairs.pop() ?? ROOT;
    values[node] = part.total[partNode];
    const firstChild = tree.firstChild(node);
    if (firstChild === NONE) continue;
    childWith.clear();
    for (let child = firstChild; child !== NONE; child = tree.nextSibling(child)) childWith.set(tree.frame[child], child);
    for (let child = part.firstChild(partNode); child !== NONE; child = part.nextSibling(child)) {
      const frame = frameOf[part.frame[child]];
      const found = frame === NONE ? undefined : childWith.get(frame);
      if (found !== undefined) pairs.push(found, child);
    }
  }
  return values;
}

/** The frame of `tree` for each of `part`. What was folded stays out: each tree has folded others. */
function sharedFrames(tree: FlameTree, part: FlameTree): Int32Array {
  const known = new Map<string, number>();
  for (let frame = 0; frame < tree.frames.length; frame++)
    if (!tree.frames.isOther(frame)) known.set(frameKey(tree, frame), frame);
  return Int32Array.from({ length: part.frames.length }, (_, frame) => known.get(frameKey(part, frame)) ?? NONE);
}

function frameKey({ frames }: FlameTree, frame: number): string {
  const { name, file, mapping, kind, line } = frames.get(frame);
  return [name, file, mapping, kind, line].join("\u0000");
}
