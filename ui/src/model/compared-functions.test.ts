import { describe, expect, it } from "vitest";
import { describeConfidence, exchangeOf, scaledFunctions, sortCompared, withValue, type ComparedFunction } from "./compared-functions.ts";
import type { ComparedColumn, Measure } from "../state/schema.ts";

const values = ([self, total]: [number, number]) => ({ self, total });

function row(name: string, before: [number, number], after: [number, number]): ComparedFunction {
  return { name, file: "", mapping: "", kind: "native", before: values(before), after: values(after) };
}

const ROWS = [
  row("gone", [30, 30], [0, 0]),
  row("main", [0, 100], [0, 200]),
  row("new", [0, 0], [80, 80]),
  row("same", [20, 20], [20, 20]),
];

describe("sortCompared", () => {
  it.each<[Measure, ComparedColumn, boolean, string]>([
    ["self", "change", true, "new main same gone"],
    ["self", "change", false, "gone main same new"],
    ["total", "change", true, "main new same gone"],
    ["total", "before", true, "main gone same new"],
    ["self", "after", true, "new same gone main"],
    ["self", "name", false, "gone main new same"],
    ["self", "name", true, "same new main gone"],
  ])("by %s, %s, descending %s", (measure, column, descending, expected) => {
    const sorted = sortCompared(ROWS, measure, column, descending);
    expect(sorted.map(({ name }) => name).join(" ")).toBe(expected);
  });
});

it("says how sure a change is, and what exchanging instances says of it", () => {
  const known = { ratio: 2, low: 1.5, high: 2.5, p: 0.0001, q: 0.0002, is_significant: true };
  const cases = [
    [undefined, "too few samples to say"],
    [{ ...known, q: null, is_significant: null }, "too few samples to say"],
    [{ ...known, q: 0.4, is_significant: false }, "may be chance: q = 0.400"],
    [known, "significant: q = below 0.001"],
    [
      { ...known, permutation_p: 0.004, confirmation: "confirmed" },
      "significant: q = below 0.001; confirmed: exchanging instances makes as much in 0.4 % of 70 ways",
    ],
    [
      { ...known, permutation_p: 0.12, confirmation: "doubtful" },
      "significant: q = below 0.001; not confirmed: exchanging instances makes as much in 12.0 % of 70 ways",
    ],
    [
      { ...known, permutation_p: null, confirmation: "too_few" },
      "significant: q = below 0.001; too few instances to confirm it",
    ],
  ] as const;
  for (const [confidence, expected] of cases) expect(describeConfidence(confidence, exchangeOf({ arrangements: 70 }))).toBe(expected);
});

it("names what is exchanged", () => {
  expect(exchangeOf({ clusters_are: "windows", arrangements: 1000 })).toEqual({ what: "windows", ways: 1000 });
  expect(exchangeOf({ clusters_are: "none" })).toEqual({ what: "instances", ways: 0 });
});

describe("scaledFunctions", () => {
  it("scales what was before and leaves what is", () => {
    const [, main] = scaledFunctions(ROWS, 1.5);
    expect(main.before).toEqual({ self: 0, total: 150 });
    expect(main.after).toEqual({ self: 0, total: 200 });
  });

  it("leaves nothing over where shares are equal", () => {
    const rows = ROWS.map((known) => ({ ...known, before: { self: 49, total: 98 } }));
    expect(scaledFunctions(rows, 2 / 98)[0].before).toEqual({ self: 1, total: 2 });
  });

  it("copies nothing where there is nothing to scale", () => {
    expect(scaledFunctions(ROWS, 1)).toBe(ROWS);
  });
});

it("leaves out what has no value on either side", () => {
  expect(withValue(ROWS, "self").map(({ name }) => name)).toEqual(["gone", "new", "same"]);
  expect(withValue(ROWS, "total")).toHaveLength(ROWS.length);
});
