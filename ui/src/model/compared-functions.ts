// The table of functions of two profiles, and its order.

import { scaledValue, type Side } from "./comparison.ts";

/** Recursion counts once in the totals. */
export interface ComparedFunction {
  name: string;
  file: string;
  mapping: string;
  kind: string;
  before: FunctionValues;
  after: FunctionValues;
}

interface FunctionValues {
  self: number;
  total: number;
}

export type Measure = "self" | "total";
export type ComparedColumn = Side | "change" | "name";

export function scaledFunctions(rows: readonly ComparedFunction[], scale: number): readonly ComparedFunction[] {
  if (scale === 1) return rows;
  return rows.map((row) => ({
    ...row,
    before: { self: scaledValue(row.before.self, scale), total: scaledValue(row.before.total, scale) },
  }));
}

/** Changes by their sign: one end is what grew most, the other what shrank most. Equal values are ordered by name. */
export function sortCompared(
  rows: readonly ComparedFunction[],
  measure: Measure,
  column: ComparedColumn,
  descending: boolean,
): ComparedFunction[] {
  const direction = descending ? -1 : 1;
  const key = ({ before, after }: ComparedFunction): number => {
    switch (column) {
      case "before":
        return before[measure];
      case "after":
        return after[measure];
      case "change":
        return after[measure] - before[measure];
      case "name":
        return 0;
    }
  };
  return rows.toSorted((left, right) => {
    const byKey = (key(left) - key(right)) * direction;
    if (byKey !== 0) return byKey;
    const byName = left.name < right.name ? -1 : left.name > right.name ? 1 : 0;
    return column === "name" ? byName * direction : byName;
  });
}
