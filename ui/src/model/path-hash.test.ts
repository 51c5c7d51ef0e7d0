import { expect, it } from "vitest";
import { encodeTree, generateTree, type TreeSpec } from "../../bench/generate.ts";
import { FlameTree, NONE } from "./flame-tree.ts";
import { findPath, pathHash } from "./path-hash.ts";

const leaf = (name: string, self: number): TreeSpec => ({ frame: { name }, self });
const tree = (...children: TreeSpec[]): FlameTree =>
  FlameTree.decode(encodeTree({ frame: { name: "total" }, self: 0, children }));

it("finds the same path in a tree with other weights and indexes", () => {
  const before = tree({ ...leaf("main", 1), children: [leaf("parse", 5), leaf("write", 3)] }, leaf("idle", 2));
  const after = tree(leaf("idle", 90), { ...leaf("main", 1), children: [leaf("write", 9), leaf("parse", 2)] });
  const hash = pathHash(before, before.pathTo(3)[2]);
  const found = findPath(after, hash);
  expect(before.nameOf(3)).toBe("write");
  expect(after.pathTo(found).map((node) => after.nameOf(node))).toEqual(["total", "main", "write"]);
});

it("tells a function from the same function below another caller", () => {
  const both = tree(
    { ...leaf("a", 0), children: [leaf("malloc", 5)] },
    { ...leaf("b", 0), children: [leaf("malloc", 4)] },
  );
  expect(findPath(both, pathHash(both, 2))).toBe(2);
  expect(findPath(both, pathHash(both, 4))).toBe(4);
});

it("finds nothing for a path that is gone, an empty or a broken fingerprint", () => {
  const some = tree(leaf("a", 1));
  for (const hash of ["0123456789abcdef", "", "xyz"]) expect(findPath(some, hash)).toBe(NONE);
});

it("finds a node of the same path for every node of a large tree", () => {
  const large = FlameTree.decode(generateTree(3_000, 200, 5));
  for (let node = 1; node < large.length; node += 37) {
    const names = (at: number): string =>
      large
        .pathTo(at)
        .map((step) => large.nameOf(step))
        .join(";");
    expect(names(findPath(large, pathHash(large, node)))).toBe(names(node));
  }
});
