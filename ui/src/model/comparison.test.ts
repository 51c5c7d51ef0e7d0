import { describe, expect, it } from "vitest";
import { encodeColumns } from "../../bench/generate.ts";
import { DecodeError } from "./columns.ts";
import { comparedTree, decodeComparison, type ComparedTree, type Look } from "./comparison.ts";
import { FlameTree } from "./flame-tree.ts";

const LOOK: Look = { widths: "after", is_scaled: false };

/*           before  after
 *  total       100    200
 *  ├ both       60    180, of which new 80
 *  ├ gone       40      0, of which inner 30
 *  └ fresh       0     20                   */
function encoded(header: Record<string, unknown> = { comparison: LOOK }, beforeTotal = [100, 60, 0, 40, 30, 0]): ArrayBuffer {
  const frames = ["total", "both", "new", "gone", "inner", "fresh"].map((name) => ({ name }));
  const nodes = {
    frame: [0, 1, 2, 3, 4, 5],
    depth: [0, 1, 2, 1, 2, 1],
    subtreeEnd: [6, 3, 3, 5, 5, 6],
    total: [200, 180, 80, 0, 0, 20],
    self: [0, 100, 80, 0, 0, 20],
  };
  return encodeColumns(frames, nodes, header, {
    before_total: Float64Array.from(beforeTotal),
    before_self: Float64Array.from([0, 60, 0, 10, 30, 0]),
  });
}

function shown(look: Partial<Look>): ComparedTree {
  return comparedTree(decodeComparison(encoded()), { ...LOOK, ...look });
}

const names = ({ tree }: ComparedTree): string[] => Array.from({ length: tree.length }, (_, node) => tree.nameOf(node));

describe("comparedTree", () => {
  it("has the widths after and leaves out what only was", () => {
    const after = shown({});
    expect(names(after)).toEqual(["total", "both", "new", "fresh"]);
    expect([...after.tree.total]).toEqual([200, 180, 80, 20]);
    expect([...after.tree.subtreeEnd]).toEqual([4, 3, 3, 4]);
    expect([...after.before.total]).toEqual([100, 60, 0, 0]);
    expect(after.unseen).toBe(2);
  });

  it("has the widths before and leaves out what only is", () => {
    const before = shown({ widths: "before" });
    expect(names(before)).toEqual(["total", "both", "gone", "inner"]);
    expect([...before.tree.total]).toEqual([100, 60, 40, 30]);
    expect([...before.after.self]).toEqual([0, 100, 0, 0]);
    expect(before.unseen).toBe(2);
  });

  it("scales what was before to the total after", () => {
    const scaled = shown({ is_scaled: true });
    expect(scaled.scale).toBe(2);
    expect([...scaled.before.total]).toEqual([200, 120, 0, 0]);
    expect([...scaled.after.total]).toEqual([200, 180, 80, 20]);
  });

  it("takes the largest change of all nodes, also of those it leaves out", () => {
    expect(shown({}).largestChange).toBe(80);
    expect(shown({ is_scaled: true }).largestChange).toBe(80);
    expect(shown({ is_scaled: true, widths: "before" }).largestChange).toBe(80);
  });

  it("scales nothing where one side is empty", () => {
    const comparison = decodeComparison(encoded({ comparison: LOOK }, [0, 0, 0, 0, 0, 0]));
    expect(comparedTree(comparison, { ...LOOK, is_scaled: true }).scale).toBe(1);
    expect(comparedTree(comparison, { ...LOOK, widths: "before" }).tree.isEmpty).toBe(true);
  });
});

describe("decodeComparison", () => {
  it("says how it is to be looked at first", () => {
    const look: Look = { widths: "before", is_scaled: true };
    expect(decodeComparison(encoded({ comparison: look })).firstLook).toEqual(look);
  });

  it("reads what a reader of one profile takes for the profile after", () => {
    expect(FlameTree.decode(encoded()).rootTotal).toBe(200);
  });

  it.each([
    ["a tree of one profile", encoded({}), "nothing of a comparison"],
    ["columns of different lengths", encoded({ comparison: LOOK }, [100]), "1 nodes have a value before, 6 one after"],
  ])("refuses %s", (_, buffer, reason) => {
    expect(() => decodeComparison(buffer)).toThrow(DecodeError);
    expect(() => decodeComparison(buffer)).toThrow(reason);
  });
});
