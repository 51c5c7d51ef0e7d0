import { expect, it } from "vitest";
import { OTHER_LAYER, stackSeries } from "./series.ts";

const answer = (series: [string, [number, number][]][]) => ({
  type: "t",
  unit: "count",
  step_ms: 10_000,
  series: series.map(([name, points]) => ({ labels: { service_name: name }, points })),
});

it("stacks the heaviest at the bottom and sums the rest", () => {
  const stacked = stackSeries(
    answer([
      [
        "small",
        [
          [1000, 1],
          [2000, 1],
        ],
      ],
      [
        "big",
        [
          [1000, 10],
          [2000, 20],
        ],
      ],
      ["tiny", [[2000, 0.5]]],
      ["middle", [[1000, 5]]],
    ]),
    "service_name",
    2,
  );
  expect(stacked.times).toEqual([1, 2]);
  expect(stacked.layers.map(({ name }) => name)).toEqual(["big", "middle", OTHER_LAYER]);
  expect(stacked.layers.map(({ own }) => own)).toEqual([
    [10, 20],
    [5, null],
    [1, 1.5],
  ]);
  expect(stacked.layers.at(-1)?.stacked).toEqual([16, 21.5]);
});

it("leaves the gaps of a single series open", () => {
  const stacked = stackSeries(
    answer([
      [
        "only",
        [
          [1000, 1],
          [3000, 2],
        ],
      ],
    ]),
    "service_name",
    6,
  );
  expect(stacked.layers[0].stacked).toEqual([1, 2]);
  expect(stackSeries(answer([]), "service_name", 6)).toEqual({ times: [], layers: [], stepSeconds: 10 });
});
