import { expect, it } from "vitest";
import { ROOT } from "./flame-tree.ts";
import { callersTrees, flameTreeOf, type CallersAnswer, type NestedNode } from "./nested-tree.ts";

const box = (name: string, total: number, self: number, ...children: NestedNode[]): NestedNode => ({
  name,
  file: "a.c",
  mapping: "/bin/a",
  kind: "native",
  line: 1,
  total,
  self,
  children,
});
const HEAD = { type: "cpu", unit: "nanoseconds", from: 0, to: 1, total: 100, function_total: 70 };
const answer = (callers: NestedNode | null, callees: NestedNode | null): CallersAnswer => ({ ...HEAD, callers, callees });

it("puts the function in the place of the root", () => {
  const { callers, callees, header } = callersTrees(
    answer(
      box("total", 70, 0, box("burn", 70, 0, box("main", 50, 50), box("test", 20, 20))),
      box("total", 70, 0, box("burn", 70, 40, box("spin", 30, 30))),
    ),
    "burn",
  );
  expect(header.function_total).toBe(70);
  expect(callers.nameOf(ROOT)).toBe("burn");
  expect(callers.children(ROOT).map((node) => [callers.nameOf(node), callers.total[node]])).toEqual([
    ["main", 50],
    ["test", 20],
  ]);
  expect([callees.rootTotal, callees.self[ROOT]]).toEqual([70, 40]);
  expect(callees.frames.get(callees.frame[1])).toMatchObject({ name: "spin", file: "a.c", kind: "native", line: 1 });
});

it("joins a function that lives in two binaries", () => {
  const elsewhere = { ...box("burn", 10, 10), mapping: "/bin/b" };
  const { callees } = callersTrees(
    answer(null, box("total", 70, 0, box("burn", 60, 30, box("spin", 30, 30)), elsewhere)),
    "burn",
  );
  expect([callees.nameOf(ROOT), callees.rootTotal, callees.self[ROOT]]).toEqual(["burn", 70, 40]);
  expect(callees.children(ROOT)).toHaveLength(1);
});

it("is empty where nothing calls it", () => {
  expect(callersTrees(answer(null, box("total", 0, 0)), "burn").callees.isEmpty).toBe(true);
});

it("reads stacks deeper than a script's own", () => {
  let deepest = box("leaf", 1, 1);
  for (let depth = 0; depth < 20_000; depth++) deepest = box(`f${depth % 100}`, 1, 0, deepest);
  const tree = flameTreeOf(HEAD, deepest);
  expect(tree.length).toBe(20_001);
  expect(tree.maxDepth).toBe(20_000);
  expect(tree.nameOf(20_000)).toBe("leaf");
});
