import { describe, expect, it } from "vitest";
import { encodeTree } from "../../bench/generate.ts";
import { boxAt, decodeChart, firstBoxBehind, Lane, laneTitle, mergedStacks, rowsOf, type StackTimes } from "./chart.ts";
import { FlameTree, NONE } from "./flame-tree.ts";
import { filterLanes, firstTellingDepth, placeLanes, placeOfRow, rowCount, rowOfDepth } from "./lane-rows.ts";

// main calls read and write; node numbers are pre-order: total, main, read, write.
const tree = FlameTree.decode(
  encodeTree({
    frame: { name: "total" },
    self: 0,
    children: [
      { frame: { name: "main" }, self: 1, children: [{ frame: { name: "read" }, self: 5 }, { frame: { name: "write" }, self: 4 }] },
    ],
  }),
);
const [MAIN, READ, WRITE] = ["main", "read", "write"].map((name) =>
  Array.from({ length: tree.length }, (_, node) => node).find((node) => tree.nameOf(node) === name),
) as [number, number, number];

/** Start, end, node; a sample for each 10 ms. */
function stacks(...boxes: [number, number, number][]): StackTimes {
  return {
    start: Float64Array.from(boxes, ([start]) => start),
    end: Float64Array.from(boxes, ([, end]) => end),
    node: Uint32Array.from(boxes, ([, , node]) => node),
    samples: Uint32Array.from(boxes, ([start, end]) => (end - start) / 10),
    value: Float64Array.from(boxes, ([start, end]) => end - start),
  };
}

const lane = (title: string, ...boxes: [number, number, number][]): Lane =>
  new Lane(tree, { labels: {}, total: 1, samples: 1 }, title, stacks(...boxes));

describe("rows of a lane", () => {
  it("keep a function that stays on the stack in one box", () => {
    const [outer, inner, none] = rowsOf(tree, stacks([0, 30, READ], [30, 50, WRITE], [50, 60, MAIN], [60, 80, READ]));
    expect(outer).toEqual({ start: [0], end: [80], node: [MAIN], samples: [8], value: [80] });
    expect([inner.start, inner.end, inner.node]).toEqual([[0, 30, 60], [30, 50, 80], [READ, WRITE, READ]]);
    expect(none).toBeUndefined();
  });

  it("part where there was no sample", () => {
    const [outer] = rowsOf(tree, stacks([0, 30, READ], [70, 80, READ]));
    expect([outer.start, outer.end]).toEqual([[0, 70], [30, 80]]);
    expect(boxAt(outer, 29.9)).toBe(0);
    expect(boxAt(outer, 30)).toBe(NONE);
    expect(boxAt(outer, 75)).toBe(1);
    expect(firstBoxBehind(outer, 80)).toBe(2);
  });
});

it("all together are single samples, each until the next", () => {
  const merged = mergedStacks([stacks([0, 20, READ]), stacks([5, 15, WRITE], [100, 110, WRITE])]);
  expect([...merged.start]).toEqual([0, 5, 10, 100]);
  expect([...merged.end]).toEqual([5, 10, 20, 110]);
  expect([...merged.node]).toEqual([READ, WRITE, READ, WRITE]);
  expect(merged.value.reduce((sum, value) => sum + value, 0)).toBe(40);
});

it("names threads by what people call them", () => {
  expect(laneTitle({ pid: "7", thread_id: "8", thread_name: "worker" })).toBe("worker · thread 8 · pid 7");
  expect(laneTitle({ pid: "7", thread_id: "7", thread_name: "app" })).toBe("app · thread 7");
  expect(laneTitle({ host: "h1", thread_name: "io" })).toBe("io · host h1");
  expect(laneTitle({})).toBe("no labels");
});

describe("lanes below each other", () => {
  const lanes = [lane("worker 1", [0, 10, READ]), lane("worker 2", [0, 10, MAIN]), lane("timer", [0, 10, READ])];

  it("have a row for the name and as many as are open", () => {
    const placed = placeLanes(lanes, ({ title }) => title !== "worker 2", { first: 0, most: 10 });
    expect(placed.map(({ headRow, depth }) => [headRow, depth])).toEqual([[0, 2], [3, 0], [4, 2]]);
    expect(rowCount(placed)).toBe(7);
    expect(placeOfRow(placed, 0)).toEqual({ placed: placed[0], depth: NONE });
    expect(placeOfRow(placed, 2)).toEqual({ placed: placed[0], depth: 1 });
    expect(placeOfRow(placed, 3)).toEqual({ placed: placed[1], depth: NONE });
    expect(placeOfRow(placed, 6)).toEqual({ placed: placed[2], depth: 1 });
    expect(placeOfRow(placed, 7)).toBeUndefined();
    expect(placeOfRow([], 0)).toBeUndefined();
  });

  it("begin where stacks differ, unless they are shallow", () => {
    expect(firstTellingDepth(tree)).toBe(0);
    const deep = lane("deep", [0, 10, READ]);
    const placed = placeLanes([deep, lane("shallow", [0, 10, MAIN])], () => true, { first: 1, most: 5 });
    expect(placed.map(({ headRow, first, depth }) => [headRow, first, depth])).toEqual([[0, 1, 1], [2, 0, 1]]);
    expect(placeOfRow(placed, 1)).toEqual({ placed: placed[0], depth: 1 });
    expect(rowOfDepth(placed[0], 1)).toBe(1);
  });

  it("are cut to so many rows, and found by words", () => {
    expect(placeLanes(lanes, () => true, { first: 0, most: 1 }).map(({ depth }) => depth)).toEqual([1, 1, 1]);
    expect(filterLanes(lanes, "  2 WORK ").map(({ title }) => title)).toEqual(["worker 2"]);
    expect(filterLanes(lanes, "")).toHaveLength(3);
  });
});

it("an answer of something else is refused", () => {
  expect(() => decodeChart(encodeTree({ frame: { name: "total" }, self: 1 }))).toThrow(/candela\/chart\/v1/);
});
