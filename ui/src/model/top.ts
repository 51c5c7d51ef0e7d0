// Order and filter of the function table.

import type { SearchedRow } from "./search.ts";

/** The parts of a row the table is ordered by. */
interface Row {
  name: string;
  self: number;
  total: number;
}

/** `keeps` is what is searched for, while something is. */
export function filterTop<R extends SearchedRow>(rows: readonly R[], keeps: ((row: SearchedRow) => boolean) | undefined): R[] {
  return keeps ? rows.filter(keeps) : [...rows];
}

/** Equal costs are ordered by name, so that a refresh does not shuffle them. */
export function sortTop<R extends Row>(
  rows: readonly R[],
  column: "self" | "total" | "name",
  descending: boolean,
): R[] {
  const direction = descending ? -1 : 1;
  return rows.toSorted((left, right) => {
    const byColumn = column === "name" ? 0 : (left[column] - right[column]) * direction;
    if (byColumn !== 0) return byColumn;
    const byName = left.name < right.name ? -1 : left.name > right.name ? 1 : 0;
    return column === "name" ? byName * direction : byName;
  });
}
