import { describe, expect, it } from "vitest";
import { axisRange, OTHER_LAYER, stackSeries, type StackOptions } from "./series.ts";

type Points = [number, number][];
const answer = (...series: [string, Points][]) => ({
  type: "t",
  unit: "count",
  from: 0,
  to: 100_000,
  step_ms: 10_000,
  series: series.map(([name, points]) => ({ labels: { service_name: name }, points })),
});
const options = (patch: Partial<StackOptions> = {}): StackOptions => ({
  nameLabel: "service_name",
  maximumLayers: 6,
  range: { from: 0, to: 1_000_000 },
  isLive: false,
  isGauge: false,
  ...patch,
});

it("draws the end of the range while only that has data", () => {
  const hour = { from: 0, to: 3_600_000 };
  expect(axisRange(answer(["a", [[1_000_000, 1]]]), hour)).toEqual(hour);
  expect(axisRange(answer(), hour)).toEqual(hour);
  expect(axisRange(answer(["a", [[3_590_000, 1]]]), hour)).toEqual({ from: 3_480_000, to: 3_600_000 });
  expect(axisRange(answer(["a", [[3_200_000, 1]]]), hour)).toEqual({ from: 3_100_000, to: 3_600_000 });
});

describe("stackSeries", () => {
  it("stacks the heaviest at the bottom and sums the rest", () => {
    const stacked = stackSeries(
      answer(
        ["small", [[10_000, 1], [20_000, 1]]],
        ["big", [[10_000, 10], [20_000, 20]]],
        ["tiny", [[20_000, 0.5]]],
        ["middle", [[10_000, 5]]],
      ),
      options({ maximumLayers: 2 }),
    );
    expect(stacked.times).toEqual([10, 20, 30]);
    expect(stacked.layers.map(({ name }) => name)).toEqual(["big", "middle", OTHER_LAYER]);
    expect(stacked.layers.map(({ own }) => own.slice(0, 2))).toEqual([[10, 20], [5, null], [1, 1.5]]);
    expect(stacked.layers.at(-1)?.stacked).toEqual([16, 21.5, 21.5]);
  });

  it("takes a range that is shorter than a step for one step", () => {
    const range = { from: 15_000, to: 22_500 };
    const stacked = stackSeries(answer(["a", [[10_000, 6], [20_000, 3]]], ["b", []]), options({ range }));
    expect([stacked.times, stacked.stepSeconds]).toEqual([[15, 22.5], 7.5]);
    expect(stacked.layers.map(({ own }) => own)).toEqual([[5, 5], [null, null]]);
    const levels = stackSeries(answer(["a", [[10_000, 6]]]), options({ range, isGauge: true }));
    expect(levels.stepSeconds).toBe(10);
  });

  it("follows the order of the list, so that one place has one colour", () => {
    const stacked = stackSeries(
      answer(["new", [[10_000, 9]]], ["second", [[10_000, 5]]], ["first", [[10_000, 3]]], ["third", [[10_000, 1]]]),
      options({ maximumLayers: 2, order: ["first", "second", "third"] }),
    );
    expect(stacked.layers.map(({ name }) => name)).toEqual(["first", "second", OTHER_LAYER]);
    expect(stacked.layers.at(-1)?.own[0]).toBe(10);
  });

  it("leaves a gap where nothing was recorded instead of drawing across it", () => {
    const stacked = stackSeries(answer(["a", [[10_000, 1], [40_000, 2]]], ["b", [[10_000, 3]]]), options());
    expect(stacked.times).toEqual([10, 20, 30, 40, 50]);
    expect(stacked.layers[1].stacked).toEqual([4, null, null, 2, 2]);
  });

  it("leaves out the end that is still on its way", () => {
    const points: Points = [[10_000, 5], [20_000, 5], [30_000, 5], [40_000, 1]];
    const live = options({ range: { from: 0, to: 53_000 }, isLive: true });
    expect(stackSeries(answer(["a", points]), live).times).toEqual([10, 20, 30, 40]);
    expect(stackSeries(answer(["a", points]), options({ range: { from: 0, to: 53_000 } })).times).toEqual([10, 20, 30, 40, 50]);
    // Right after the start an incomplete point is better than none.
    expect(stackSeries(answer(["a", [[50_000, 1]]]), live).layers[0].own).toEqual([1, 1]);
  });

  it("leaves out steps that are hardly in the range", () => {
    const points: Points = [[0, 3], [10_000, 5], [20_000, 5], [30_000, 4], [40_000, 4], [50_000, 9]];
    const range = { from: 6_000, to: 52_000 };
    expect(stackSeries(answer(["a", points]), options({ range })).layers[0].own).toEqual([5, 5, 4, 4, 4]);
    const gauge = stackSeries(answer(["a", points]), options({ range, isGauge: true }));
    expect(gauge.layers[0].own).toEqual([3, 5, 5, 4, 4, 9, 9]);
  });

  it("of nothing is nothing", () => {
    expect(stackSeries(answer(), options())).toEqual({ times: [], layers: [], stepSeconds: 10 });
  });
});
