// Order and filter of the function table.

import type { SearchPattern } from "./search.ts";

/** The parts of a row the table is searched by. */
interface NamedRow {
  name: string;
  file: string;
  mapping: string;
}

/** And ordered by. */
interface Row extends NamedRow {
  self: number;
  total: number;
}

export function filterTop<R extends NamedRow>(rows: readonly R[], pattern: SearchPattern | undefined): R[] {
  if (!pattern) return [...rows];
  const field = ({ fn: "name", file: "file", bin: "mapping" } as const)[pattern.field];
  return rows.filter((row) => pattern.expression.test(row[field]));
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
