import { describe, expect, it } from "vitest";
import { scaledFunctions, sortCompared, type ComparedColumn, type ComparedFunction, type Measure } from "./compared-functions.ts";

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
