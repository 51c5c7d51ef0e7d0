import { describe, expect, it } from "vitest";
import { encodeTree, generateTree, type TreeSpec } from "../../bench/generate.ts";
import { FlameTree, NONE, ROOT } from "./flame-tree.ts";
import { TreeRows } from "./tree-rows.ts";

const box = (name: string, self: number, ...children: TreeSpec[]): TreeSpec => ({ frame: { name }, self, children });
const treeOf = (...children: TreeSpec[]): FlameTree => FlameTree.decode(encodeTree(box("total", 0, ...children)));

/*  total: z 60 (b 40 (d 10), c 15, self 5), e 40 (f 30, self 10)  */
const TREE = treeOf(box("z", 5, box("b", 30, box("d", 10)), box("c", 15)), box("e", 10, box("f", 30)));
const names = (rows: TreeRows): string[] =>
  Array.from({ length: rows.length }, (_, row) => rows.tree.nameOf(rows.nodeAt(row)));
const node = (tree: FlameTree, name: string): number =>
  Array.from({ length: tree.length }, (_, at) => at).find((at) => tree.nameOf(at) === name) ?? NONE;

describe("TreeRows", () => {
  it("shows what is open, and nothing below what is closed", () => {
    const rows = new TreeRows(TREE);
    expect(names(rows)).toEqual(["total"]);
    rows.open(ROOT);
    expect(names(rows)).toEqual(["total", "z", "e"]);
    rows.open(node(TREE, "z"));
    expect(names(rows)).toEqual(["total", "z", "b", "c", "e"]);
    rows.close(ROOT);
    expect(names(rows)).toEqual(["total"]);
    rows.open(ROOT);
    expect(names(rows)).toEqual(["total", "z", "b", "c", "e"]);
  });

  it("opens and closes everything below a node", () => {
    const rows = new TreeRows(TREE);
    rows.openAll(ROOT);
    expect(names(rows)).toEqual(["total", "z", "b", "d", "c", "e", "f"]);
    rows.closeAll(node(TREE, "z"));
    expect(names(rows)).toEqual(["total", "z", "e", "f"]);
  });

  it("orders siblings by own cost and by name", () => {
    const rows = new TreeRows(TREE);
    rows.open(ROOT);
    rows.setOrder("self");
    expect(names(rows)).toEqual(["total", "e", "z"]);
    rows.setOrder("name");
    expect(names(rows)).toEqual(["total", "e", "z"]);
    rows.setOrder("total");
    expect(names(rows)).toEqual(["total", "z", "e"]);
  });

  it("keeps what was folded at the end of every order", () => {
    const folded = treeOf({ frame: { name: "other", kind: "other" }, self: 50 }, box("b", 30), box("a", 20));
    const rows = new TreeRows(folded);
    rows.open(ROOT);
    for (const order of ["name", "self"] as const) {
      rows.setOrder(order);
      expect(names(rows).at(-1)).toBe("other");
    }
  });

  it("follows the heaviest path while it is most of the cost", () => {
    const rows = new TreeRows(TREE);
    const end = rows.openHeaviest(ROOT);
    expect(TREE.nameOf(end)).toBe("z");
    expect(names(rows)).toEqual(["total", "z", "b", "c", "e"]);
  });

  it("opens the way to what a search found", () => {
    const rows = new TreeRows(TREE);
    rows.reveal([node(TREE, "d"), node(TREE, "f")]);
    expect(names(rows)).toEqual(["total", "z", "b", "d", "c", "e", "f"]);
    expect(rows.nodeAt(rows.rowOf(node(TREE, "d")))).toBe(node(TREE, "d"));
  });

  it("begins at the node that is zoomed to", () => {
    const rows = new TreeRows(TREE);
    rows.setTop(node(TREE, "z"));
    expect(names(rows)).toEqual(["z", "b", "c"]);
    expect(rows.rowOf(node(TREE, "e"))).toBe(NONE);
  });

  it("stays open over a refresh, whatever order the functions have then", () => {
    const before = new TreeRows(TREE);
    before.reveal([node(TREE, "d")]);
    const next = treeOf(box("new", 90), box("e", 50), box("z", 1, box("c", 2), box("b", 1, box("d", 7))));
    const rows = new TreeRows(next);
    rows.openAs(before);
    expect(names(rows)).toEqual(["total", "new", "e", "z", "b", "d", "c"]);
  });

  it("unfolds a large tree whole", () => {
    const large = FlameTree.decode(generateTree(50_000, 500, 3));
    const rows = new TreeRows(large);
    rows.openAll(ROOT);
    expect(rows.length).toBe(large.length);
    const again = new TreeRows(large, "name");
    again.openAs(rows);
    expect(again.length).toBe(large.length);
  });
});
