import { expect, it } from "vitest";
import { encodeTree, type TreeSpec } from "../../bench/generate.ts";
import { costParts, leadingParts, mixOf } from "./cost-parts.ts";
import { FlameTree, NONE, ROOT } from "./flame-tree.ts";

const box = (name: string, self: number, ...children: TreeSpec[]): TreeSpec => ({ frame: { name }, self, children });
const treeOf = (...children: TreeSpec[]): FlameTree => FlameTree.decode(encodeTree(box("total", 0, ...children)));
const node = (tree: FlameTree, name: string): number =>
  Array.from({ length: tree.length }, (_, at) => at).find((at) => tree.nameOf(at) === name) ?? NONE;

/*  total 100: main 90 (read 60, lock 30), idle 10  */
const WHOLE = treeOf(box("main", 0, box("read", 60), box("lock", 30)), box("idle", 10));
const PARTS = costParts(WHOLE, [
  { name: "disk", tree: treeOf(box("main", 0, box("read", 55))) },
  { name: "futex", tree: treeOf(box("main", 0, box("lock", 30), box("read", 5))) },
]);

it("finds what each part has of a node, and what none has", () => {
  expect(mixOf(PARTS, ROOT)).toEqual([
    { name: "disk", value: 55 },
    { name: "futex", value: 35 },
    { name: undefined, value: 10 },
  ]);
  expect(mixOf(PARTS, node(WHOLE, "lock"))).toEqual([{ name: "futex", value: 30 }]);
  expect(mixOf(PARTS, node(WHOLE, "idle"))).toEqual([{ name: undefined, value: 10 }]);
});

it("says which part leads, and which follows with a tenth or more", () => {
  expect(leadingParts(PARTS, node(WHOLE, "main"))).toEqual({ first: 0, second: 1 });
  expect(leadingParts(PARTS, node(WHOLE, "read"))).toEqual({ first: 0, second: NONE });
  expect(leadingParts(PARTS, node(WHOLE, "lock"))).toEqual({ first: 1, second: NONE });
  expect(leadingParts(PARTS, node(WHOLE, "idle"))).toEqual({ first: NONE, second: NONE });
});

it("takes a function on another path for another place", () => {
  const elsewhere = costParts(WHOLE, [{ name: "disk", tree: treeOf(box("read", 40)) }]);
  expect(elsewhere.values[0][node(WHOLE, "read")]).toBe(0);
});

it("has nothing of an empty tree", () => {
  const empty = treeOf();
  expect(mixOf(costParts(empty, [{ name: "disk", tree: empty }]), ROOT)).toEqual([]);
});
