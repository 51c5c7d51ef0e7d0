// The answer of `/api/v1/diff`: both sides, their functions, and the union of both trees.

import type { FlameColumns, PartialHead } from "./columns.ts";
import type { ComparedFunction } from "./compared-functions.ts";
import type { ProfiledTime } from "./cost.ts";
import { shareScale, type Comparison, type Look } from "./comparison.ts";
import { packFrames, type NamedFrame } from "./frame-columns.ts";
import { chanceOf, type FunctionVerdict, type Verdicts } from "./node-chance.ts";
import type { Normalization } from "../state/schema.ts";

export interface DiffAnswer extends PartialHead {
  schema: string;
  type: string;
  unit: string;
  from: number;
  to: number;
  before: DiffSide;
  after: DiffSide;
  truncated?: { shown: number; total: number };
  functions: ComparedFunction[];
  /** Absent where a server knows no statistics. */
  statistics?: DiffStatistics;
  tree: DiffTree;
}

export interface DiffSide extends ProfiledTime {
  query: string;
  from: number;
  to: number;
  total: number;
  samples: number | null;
  hint?: string;
}

export interface DiffStatistics {
  normalization: Normalization;
  /** What share of the significant ones may be chance. */
  fdr: number;
  /** What differs by chance: `instances`, or `windows` of time where a side has one instance; `none` where only samples tell. */
  clusters_are?: string;
  clusters_before: number;
  clusters_after: number;
  is_paired: boolean;
  /** What values before are multiplied by to be comparable. */
  size_factor: number | null;
  tested: number;
  /** By how many ways to deal the instances to both sides what is significant was confirmed or not. */
  arrangements?: number;
  /** Why no confidence can be told, or only a part of it. */
  reason: string | null;
}

/** What nodes say for themselves is null where they were not reached, and absent where a server tests none. */
interface DiffTree extends Verdicts {
  nodes: number;
  pruned: number;
  frames: (NamedFrame & FunctionVerdict)[];
  frame: number[];
  depth: number[];
  subtree_end: number[];
  before_total: number[];
  before_self: number[];
  after_total: number[];
  after_self: number[];
}

const FIRST_LOOK: Look = { widths: "after", is_scaled: true };

export function comparisonOfDiff({ tree, type, unit, from, to, before, after }: DiffAnswer): Comparison {
  const { frames, strings, kinds } = packFrames(tree.frames);
  const afterValues = { total: Float64Array.from(tree.after_total), self: Float64Array.from(tree.after_self) };
  const columns: FlameColumns = {
    header: {
      schema: "candela/flamegraph/v1",
      type,
      unit,
      from,
      to,
      total: after.total,
      samples: after.samples,
      nodes: tree.nodes,
      frames: tree.frames.length,
      pruned: tree.pruned,
      ...(after.total === 0 && before.total === 0 && after.hint !== undefined && { hint: after.hint }),
      kinds,
      columns: [],
    },
    nodes: {
      frame: Uint32Array.from(tree.frame),
      depth: Uint16Array.from(tree.depth),
      subtreeEnd: Uint32Array.from(tree.subtree_end),
      ...afterValues,
    },
    frames,
    strings,
  };
  return {
    columns,
    before: { total: Float64Array.from(tree.before_total), self: Float64Array.from(tree.before_self) },
    after: afterValues,
    firstLook: FIRST_LOOK,
    chance: chanceOf(tree, tree.frames, tree.frame),
  };
}

/**
 * What the values before are multiplied by, as the server has found out. One that does not say: by shares so that both
 * totals are the same, absolutely by the time that either side was asked for; robustly nobody knows, `undefined`.
 */
export function scaleOf(answer: DiffAnswer, comparison: Comparison, normalization: Normalization): number | undefined {
  const { statistics, before, after } = answer;
  if (statistics?.normalization === normalization && statistics.size_factor !== null) return statistics.size_factor;
  if (normalization === "share") return shareScale(comparison);
  if (normalization === "absolute") return (after.to - after.from) / Math.max(1, before.to - before.from);
  return undefined;
}
