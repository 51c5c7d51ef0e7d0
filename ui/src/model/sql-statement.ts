// The functions of a selection by their own cost, as SQL over the tables of docs/storage.md.

import { parseFilters } from "./filters.ts";
import { parseSelector, type Matcher } from "./selector.ts";
import type { TimeRange } from "./time-range.ts";

export interface SqlSelection {
  query: string;
  /** The whole id: a table has no short names. */
  typeId: string;
  range: TimeRange;
  /** As in the address. */
  filters: string;
  path: string;
}

const WALL = "wall:wall:nanoseconds:wall:nanoseconds";
const WALL_PARTS = ["process_cpu:cpu:nanoseconds:cpu:nanoseconds", "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds"];

/** `undefined` for a selector that does not parse: what it means is for the server to say. */
export function sqlStatement({ query, typeId, range, filters, path }: SqlSelection): string | undefined {
  const matchers = parseSelector(query);
  if (matchers === undefined) return undefined;
  const ofSeries = matchers.filter(({ label }) => label !== "service_name");
  const conditions = [
    typeCondition(typeId),
    `samples.time >= ${text(new Date(range.from).toISOString())}`,
    `samples.time < ${text(new Date(range.to).toISOString())}`,
    ...matchers
      .filter(({ label }) => label === "service_name")
      .map((matcher) => condition("samples.service_name", matcher)),
    ...ofSeries.map((matcher) => condition(`coalesce(label_sets.labels[${text(matcher.label)}], '')`, matcher)),
  ];
  const labelTables = [
    "JOIN profiles ON profiles.block_id = samples.block_id AND profiles.profile_id = samples.profile_id",
    "JOIN label_sets ON label_sets.block_id = profiles.block_id AND label_sets.label_set_id = profiles.series_id",
  ];
  return [
    "SELECT function_name, sum(samples.value) AS own",
    "FROM samples",
    "JOIN stack_nodes ON stack_nodes.block_id = samples.block_id AND stack_nodes.stack_id = samples.stack_id",
    "JOIN locations ON locations.block_id = stack_nodes.block_id AND locations.location_id = stack_nodes.location_id",
    ...(ofSeries.length > 0 ? labelTables : []),
    `WHERE ${conditions.join("\n    AND ")}`,
    "GROUP BY function_name",
    "ORDER BY own DESC",
    "LIMIT 100",
    // Not before it: as an argument of `candela query sql` it would begin as an option does.
    ...remarks(filters, path),
  ].join("\n");
}

/** What the view has and tables of samples cannot be asked for in one line: better said than left out silently. */
function remarks(filters: string, path: string): string[] {
  const active = parseFilters(filters).filter(({ isOff }) => !isOff);
  return [
    "-- functions by their own cost, as stored; matchers look at the labels of series",
    ...(active.length > 0 || path !== "" ? ["-- filters and the path of the view are not part of this statement"] : []),
  ];
}

/** Wall-clock time is the sum of both parts. */
function typeCondition(typeId: string): string {
  if (typeId !== WALL) return `samples.profile_type = ${text(typeId)}`;
  return `samples.profile_type IN (${WALL_PARTS.map(text).join(", ")})`;
}

/** Patterns match the whole value, and a label that is not there is empty. */
function condition(column: string, { operator, value }: Matcher): string {
  switch (operator) {
    case "=":
      return `${column} = ${text(value)}`;
    case "!=":
      return `${column} <> ${text(value)}`;
    case "=~":
      return `${column} ~ ${text(`^(?:${value})$`)}`;
    case "!~":
      return `${column} !~ ${text(`^(?:${value})$`)}`;
  }
}

function text(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}
