import { describe, expect, it } from "vitest";
import { encodeTree, generateTree, type TreeSpec } from "../../bench/generate.ts";
import { FlameTree } from "../model/flame-tree.ts";
import { emptyLayout, layOut, type BoxList, type Window } from "./layout.ts";

const GENERATED = FlameTree.decode(generateTree(30_000, 400, 21));
const leaf = (name: string, self: number, kind = "native"): TreeSpec => ({ frame: { name, kind }, self });
const flat = (...children: TreeSpec[]): FlameTree =>
  FlameTree.decode(encodeTree({ frame: { name: "total" }, self: 0, children }));

function wholeWindow(tree: FlameTree, patch: Partial<Window> = {}): Window {
  return {
    left: 0,
    right: tree.rootTotal,
    firstRow: 0,
    lastRow: tree.maxDepth,
    width: 1000,
    minimumWidth: 1,
    ...patch,
  };
}

function entries(list: BoxList): { node: number; x: number; width: number; row: number }[] {
  return Array.from({ length: list.length }, (_, index) => ({
    node: list.node[index],
    x: list.x[index],
    width: list.width[index],
    row: list.row[index],
  }));
}

describe("layOut", () => {
  it("finds every box that is wide enough and in view, as a scan of all nodes does", () => {
    for (const [left, right, firstRow] of [
      [0, 1, 0],
      [0.2, 0.45, 3],
      [0.6, 0.61, 5],
    ]) {
      const window = wholeWindow(GENERATED, {
        left: left * GENERATED.rootTotal,
        right: right * GENERATED.rootTotal,
        firstRow,
        lastRow: firstRow + 12,
        minimumWidth: 3,
      });
      const scale = window.width / (window.right - window.left);
      const expected: number[] = [];
      for (let node = 0; node < GENERATED.length; node++) {
        const x = (GENERATED.start[node] - window.left) * scale;
        const width = GENERATED.total[node] * scale;
        const row = GENERATED.depth[node];
        if (
          row >= window.firstRow &&
          row <= window.lastRow &&
          x + width > 0 &&
          x < window.width &&
          width >= window.minimumWidth
        )
          expected.push(node);
      }
      const found = entries(layOut(GENERATED, window, emptyLayout()).boxes).map(({ node }) => node);
      expect(found).toEqual(expected);
      expect(found.length).toBeGreaterThan(5);
    }
  });

  it("never draws outside the window, nor two boxes over each other", () => {
    const window = wholeWindow(GENERATED, { left: 0.3 * GENERATED.rootTotal, right: 0.7 * GENERATED.rootTotal });
    const { boxes, slivers } = layOut(GENERATED, window, emptyLayout());
    const rows = new Map<number, { x: number; width: number }[]>();
    for (const box of [...entries(boxes), ...entries(slivers)]) {
      expect(box.x).toBeGreaterThanOrEqual(0);
      expect(box.x + box.width).toBeLessThanOrEqual(1000.01);
      rows.set(box.row, [...(rows.get(box.row) ?? []), box]);
    }
    for (const row of rows.values()) {
      row.sort((left, right) => left.x - right.x);
      for (let index = 1; index < row.length; index++)
        expect(row[index].x).toBeGreaterThanOrEqual(row[index - 1].x + row[index - 1].width - 1.01);
    }
  });

  it("merges what is too narrow into one sliver that covers the same width", () => {
    const tree = flat(leaf("wide", 900), ...Array.from({ length: 100 }, (_, index) => leaf(`n${index}`, 1)));
    const { boxes, slivers } = layOut(tree, wholeWindow(tree, { minimumWidth: 3 }), emptyLayout());
    expect(entries(boxes).map(({ node }) => tree.nameOf(node))).toEqual(["total", "wide"]);
    expect(entries(slivers)).toHaveLength(1);
    expect(entries(slivers)[0]).toMatchObject({ row: 1, x: 900 });
    expect(entries(slivers)[0].width).toBeCloseTo(100, 3);
  });

  it("still draws `other` behind the slivers, and boxes of a tree in any order", () => {
    const pruned = flat(leaf("wide", 500), leaf("narrow", 1), leaf("other", 499, "other"));
    expect(
      entries(layOut(pruned, wholeWindow(pruned, { minimumWidth: 3 }), emptyLayout()).boxes).map(({ node }) =>
        pruned.nameOf(node),
      ),
    ).toEqual(["total", "wide", "other"]);
    const unordered = flat(leaf("narrow", 1), leaf("wide", 999));
    expect(
      entries(layOut(unordered, wholeWindow(unordered, { minimumWidth: 3 }), emptyLayout()).boxes).map(({ node }) =>
        unordered.nameOf(node),
      ),
    ).toEqual(["total", "wide"]);
  });

  it("costs boxes, not nodes: all leaves below the threshold are one step", () => {
    const size = 50_000;
    const comb = flat(leaf("wide", size), ...Array.from({ length: size }, (_, index) => leaf(`n${index % 100}`, 1)));
    const { boxes, slivers } = layOut(comb, wholeWindow(comb), emptyLayout());
    expect(boxes.length + slivers.length).toBe(3);
  });

  it("grows its lists and draws nothing of an empty tree", () => {
    const wide = flat(...Array.from({ length: 10_000 }, (_, index) => leaf(`n${index}`, 1)));
    expect(layOut(wide, wholeWindow(wide, { width: 40_000 }), emptyLayout()).boxes.length).toBe(10_001);
    const empty = FlameTree.decode(encodeTree(leaf("total", 0)));
    expect(layOut(empty, wholeWindow(empty), emptyLayout()).boxes.length).toBe(0);
  });
});
