// Two profiles in one tree: as wide as one of them, each node with its values in both. What the page of `candela diff` holds.

import { columnsOf, DecodeError, openColumns, type FlameColumns, type FlameHeader } from "./columns.ts";
import { FlameTree, ROOT } from "./flame-tree.ts";
import { pickChance, type NodeChance } from "./node-chance.ts";

export type Side = "before" | "after";

/** One entry a node. */
export interface Values {
  total: Float64Array;
  self: Float64Array;
}

/** How two sides are looked at. */
export interface Look {
  /** Whose widths the boxes have. */
  widths: Side;
  /** What was before is scaled, to the total after where nothing else is said: shares are compared, not values. */
  is_scaled: boolean;
  /** By what instead. */
  scale?: number;
}

/** The nodes of either side, with their values as measured. */
export interface Comparison {
  /** Which changes may be chance. Nothing where nobody knows. */
  chance?: NodeChance | undefined;
  columns: FlameColumns;
  before: Values;
  after: Values;
  /** How the writer wants it looked at first. */
  firstLook: Look;
}

/** As wide as one side; nodes that this side has not are left out. */
export interface ComparedTree {
  tree: FlameTree;
  look: Look;
  before: Values;
  after: Values;
  /** What the values before were multiplied by. */
  scale: number;
  /** Of all own values, either way: what the strongest colour stands for. */
  largestChange: number;
  /** How many nodes only the other side has. */
  unseen: number;
  chance: NodeChance | undefined;
}

export function decodeComparison(buffer: ArrayBuffer): Comparison {
  const reader = openColumns(buffer);
  const columns = columnsOf(reader);
  const { comparison } = columns.header as FlameHeader & { comparison?: Look };
  if (!comparison) throw new DecodeError("the header says nothing of a comparison");
  const before = { total: reader.f64("before_total"), self: reader.f64("before_self") };
  const { total, self } = columns.nodes;
  for (const { length } of [before.total, before.self]) {
    if (length !== total.length) throw new DecodeError(`${length} nodes have a value before, ${total.length} one after`);
  }
  return { columns, before, after: { total, self }, firstLook: comparison };
}

/** `givenScale` is what the values before are multiplied by; without it the look says. */
export function comparedTree(comparison: Comparison, look: Look, givenScale?: number): ComparedTree {
  const { columns } = comparison;
  const scale = givenScale ?? (look.is_scaled ? (look.scale ?? shareScale(comparison)) : 1);
  const before = times(comparison.before, scale);
  const { after } = comparison;
  const shown = look.widths === "before" ? before : after;
  const kept = withWidth(shown.total, columns.nodes.subtreeEnd);
  const picked = { before: pick(before, kept), after: pick(after, kept) };
  const tree = new FlameTree({
    ...columns,
    nodes: {
      frame: Uint32Array.from(kept, (node) => columns.nodes.frame[node]),
      depth: Uint16Array.from(kept, (node) => columns.nodes.depth[node]),
      subtreeEnd: newEnds(kept, columns.nodes.subtreeEnd),
      ...picked[look.widths],
    },
  });
  const largestChange = after.self.reduce((most, value, node) => Math.max(most, Math.abs(value - before.self[node])), 0);
  const chance = comparison.chance && pickChance(comparison.chance, kept);
  return { tree, look, ...picked, scale, largestChange, unseen: shown.total.length - kept.length, chance };
}

/** What makes the total before that after; a side without a total stays as it is. */
export function shareScale({ before, after }: Comparison): number {
  const [from, to] = [before.total[ROOT], after.total[ROOT]];
  return from > 0 && to > 0 ? to / from : 1;
}

function times({ total, self }: Values, scale: number): Values {
  if (scale === 1) return { total, self };
  const scaled = (value: number): number => scaledValue(value, scale);
  return { total: total.map(scaled), self: self.map(scaled) };
}

/** To whole units, as values are: what is left of a product would show as a change where there is none. */
export function scaledValue(value: number, scale: number): number {
  return Math.round(value * scale);
}

function pick({ total, self }: Values, nodes: Uint32Array): Values {
  return { total: Float64Array.from(nodes, (node) => total[node]), self: Float64Array.from(nodes, (node) => self[node]) };
}

/** The root, and what has a width in a parent that has one. */
function withWidth(total: Float64Array, subtreeEnd: Uint32Array): Uint32Array {
  const kept: number[] = [];
  for (let node = ROOT; node < total.length;) {
    const isKept = node === ROOT || total[node] > 0;
    if (isKept) kept.push(node);
    node = isKept ? node + 1 : subtreeEnd[node];
  }
  return Uint32Array.from(kept);
}

/** Where the subtrees of the nodes that are kept end now. */
function newEnds(kept: Uint32Array, subtreeEnd: Uint32Array): Uint32Array {
  const newIndex = new Uint32Array((subtreeEnd[ROOT] ?? 0) + 1);
  for (let node = 0, next = 0; node < newIndex.length; node++) {
    newIndex[node] = next;
    if (kept[next] === node) next++;
  }
  return Uint32Array.from(kept, (node) => newIndex[subtreeEnd[node]]);
}
