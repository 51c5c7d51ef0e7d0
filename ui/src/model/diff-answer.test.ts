import { describe, expect, it } from "vitest";
import { comparedTree } from "./comparison.ts";
import { comparisonOfDiff, scaleOf, type DiffAnswer } from "./diff-answer.ts";

const NO_PLACE = { file: "", mapping: "/bin/a", kind: "native" };

const ANSWER: DiffAnswer = {
  schema: "candela/diff/v1",
  type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
  unit: "nanoseconds",
  from: 7_200_000,
  to: 10_800_000,
  before: { query: "{}", from: 0, to: 7_200_000, total: 200, samples: 20 },
  after: { query: "{}", from: 7_200_000, to: 10_800_000, total: 100, samples: 10 },
  functions: [],
  tree: {
    nodes: 4,
    pruned: 0,
    frames: [
      { name: "total", file: "", mapping: "", kind: "" },
      { name: "main", ...NO_PLACE, is_significant: false, q: 0.8 },
      { name: "new", ...NO_PLACE, is_significant: true, q: 0.001 },
      { name: "gone", ...NO_PLACE, is_significant: null, q: null },
    ],
    frame: [0, 1, 2, 3],
    depth: [0, 1, 2, 2],
    subtree_end: [4, 4, 3, 4],
    before_total: [200, 200, 0, 80],
    before_self: [0, 120, 0, 80],
    after_total: [100, 100, 40, 0],
    after_self: [0, 60, 40, 0],
  },
};

describe("the answer of a comparison", () => {
  const comparison = comparisonOfDiff(ANSWER);

  it("is a tree as wide as what is after", () => {
    const { tree, before, scale } = comparedTree(comparison, comparison.firstLook);
    expect([...tree.total]).toEqual([100, 100, 40]);
    expect([1, 2].map((node) => tree.nameOf(node))).toEqual(["main", "new"]);
    expect(tree.frames.get(tree.frame[1])).toEqual({ name: "main", ...NO_PLACE, line: 0 });
    expect([scale, ...before.total]).toEqual([0.5, 100, 100, 0]);
  });

  it("marks what may be chance, and only where that is known", () => {
    expect([...(comparison.chance?.isUncertain ?? [])]).toEqual([0, 1, 0, 0]);
    const tested = { ...ANSWER.tree, q: [null, 0.01, null, null], is_significant: [null, true, false, null] };
    const { chance } = comparedTree(comparisonOfDiff({ ...ANSWER, tree: tested }), { widths: "before", is_scaled: true });
    expect([...(chance?.isUncertain ?? [])]).toEqual([0, 0, 0]);
    const frames = ANSWER.tree.frames.map(({ name, file, mapping, kind }) => ({ name, file, mapping, kind }));
    expect(comparisonOfDiff({ ...ANSWER, tree: { ...ANSWER.tree, frames } }).chance).toBeUndefined();
  });

  it("is made comparable in three ways", () => {
    expect(scaleOf(ANSWER, comparison, "share")).toBe(0.5);
    expect(scaleOf(ANSWER, comparison, "absolute")).toBe(0.5);
    expect(scaleOf(ANSWER, comparison, "robust")).toBeUndefined();
    const statistics = {
      normalization: "robust" as const,
      fdr: 0.05,
      clusters_before: 2,
      clusters_after: 2,
      is_paired: true,
      size_factor: 0.6,
      tested: 3,
      reason: null,
    };
    expect(scaleOf({ ...ANSWER, statistics }, comparison, "robust")).toBe(0.6);
  });
});
