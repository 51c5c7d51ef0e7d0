import { expect, it } from "vitest";
import { encodeTree } from "../../bench/generate.ts";
import { Lane, type StackTimes } from "../model/chart.ts";
import { FlameTree } from "../model/flame-tree.ts";
import { placeLanes } from "../model/lane-rows.ts";
import { layOutChart, minimumBoxWidth } from "./chart-layout.ts";
import { emptyLayout } from "./layout.ts";

const tree = FlameTree.decode(
  encodeTree({ frame: { name: "total" }, self: 0, children: [{ frame: { name: "a" }, self: 1 }, { frame: { name: "b" }, self: 1 }] }),
);

function placed(count: number, length: number) {
  const numbers = Array.from({ length: count }, (_, index) => index);
  const stacks: StackTimes = {
    start: Float64Array.from(numbers, (index) => index * length),
    end: Float64Array.from(numbers, (index) => (index + 1) * length),
    node: Uint32Array.from(numbers, (index) => 1 + (index % 2)),
    samples: new Uint32Array(count).fill(1),
    value: new Float64Array(count).fill(1),
  };
  return placeLanes([new Lane(tree, { labels: {}, total: 1, samples: 1 }, "t", stacks)], () => true, { first: 0, most: 10 });
}

const window = { firstRow: 0, lastRow: 5, width: 1000, minimumWidth: 1 };

it("boxes stand where their times are, cut to what is seen", () => {
  const { boxes } = layOutChart(placed(10, 10), { ...window, span: { left: 15, right: 35 } }, emptyLayout());
  expect(boxes.length).toBe(3);
  expect([...boxes.x.subarray(0, 3)]).toEqual([0, 250, 750]);
  expect([...boxes.width.subarray(0, 3)]).toEqual([250, 500, 250]);
  expect([...boxes.row.subarray(0, 3)]).toEqual([1, 1, 1]);
});

it("draws no more boxes than there are pixels, however many samples there are", () => {
  const many = placed(200_000, 1);
  const { boxes } = layOutChart(many, { ...window, span: { left: 0, right: 200_000 } }, emptyLayout());
  expect(boxes.length).toBeLessThanOrEqual(1000);
  expect(boxes.length).toBeGreaterThan(900);
  const zoomed = layOutChart(many, { ...window, span: { left: 1000, right: 1010 } }, emptyLayout());
  expect(zoomed.boxes.length).toBe(10);
  expect(layOutChart(many, { ...window, span: { left: 5, right: 5 } }, emptyLayout()).boxes.length).toBe(0);
});

it("the least width follows the budget of a picture", () => {
  expect(minimumBoxWidth(5, 1000, false)).toBe(1);
  expect(minimumBoxWidth(60, 1920, false)).toBeCloseTo(9.6);
  expect(minimumBoxWidth(60, 1920, true)).toBeCloseTo(23.04);
});
