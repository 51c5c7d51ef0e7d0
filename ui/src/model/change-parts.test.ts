import { describe, expect, it } from "vitest";
import { encodeColumns } from "../../bench/generate.ts";
import { changeOf, changeParts, explainingNode } from "./change-parts.ts";
import { comparedTree, decodeComparison, type ComparedTree, type Look } from "./comparison.ts";
import { ROOT } from "./flame-tree.ts";

/*              before  after
 *  total          100    150
 *  ├ handle        80    140, of which own 10 → 12
 *  │ ├ encode      40     96, of which quote 35 → 90
 *  │ ├ decode      30     32
 *  ├ idle          15     10
 *  └ gone           5      0  */
function shown(look: Partial<Look> = {}): ComparedTree {
  const frames = ["total", "handle", "encode", "quote", "decode", "idle", "gone"].map((name) => ({ name }));
  const nodes = {
    frame: [0, 1, 2, 3, 4, 5, 6],
    depth: [0, 1, 2, 3, 2, 1, 1],
    subtreeEnd: [7, 5, 4, 4, 5, 6, 7],
    total: [150, 140, 96, 90, 32, 10, 0],
    self: [0, 12, 6, 90, 32, 10, 0],
  };
  const first: Look = { widths: "after", is_scaled: false };
  const buffer = encodeColumns(frames, nodes, { comparison: first }, {
    before_total: Float64Array.from([100, 80, 40, 35, 30, 15, 5]),
    before_self: Float64Array.from([0, 10, 5, 35, 30, 15, 5]),
  });
  return comparedTree(decodeComparison(buffer), { ...first, ...look });
}

function told(compared: ComparedTree, node: number): [string, number][] {
  return changeParts(compared, node).map((part) => [part.of === "child" ? compared.tree.nameOf(part.node) : part.of, changeOf(part)]);
}

describe("changeParts", () => {
  it("has the children and the own value, the largest change first", () => {
    const compared = shown();
    expect(told(compared, 1)).toEqual([
      ["encode", 56],
      ["self", 2],
      ["decode", 2],
    ]);
  });

  it.each(["before", "after"] as const)("adds up to the change of every node, as wide as %s", (widths) => {
    const compared = shown({ widths });
    for (let node = 0; node < compared.tree.length; node++) {
      const sum = changeParts(compared, node).reduce((all, part) => all + changeOf(part), 0);
      expect(sum).toBe(compared.after.total[node] - compared.before.total[node]);
    }
  });

  it("counts what only the other side has", () => {
    expect(told(shown(), ROOT)).toEqual([
      ["handle", 60],
      ["idle", -5],
      ["unseen", -5],
    ]);
  });

  it("takes what rounding leaves for no change", () => {
    // 150 / 100 of each value, rounded: 53 of 35 · 1.5 = 52.5.
    const compared = shown({ is_scaled: true });
    expect(told(compared, 2).map(([name]) => name)).toEqual(["quote", "self"]);
  });
});

describe("explainingNode", () => {
  it("goes as deep as one node has most of the change", () => {
    const compared = shown();
    expect(compared.tree.nameOf(explainingNode(compared, ROOT))).toBe("quote");
  });

  it("stays where the change is spread or where there is none", () => {
    const compared = shown();
    const quote = explainingNode(compared, ROOT);
    expect(explainingNode(compared, quote)).toBe(quote);
    const same = { ...compared, before: compared.after };
    expect(explainingNode(same, ROOT)).toBe(ROOT);
  });
});
