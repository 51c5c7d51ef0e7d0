import { expect, it } from "vitest";
import { sqlStatement, type SqlSelection } from "./sql-statement.ts";

const CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const SELECTION: SqlSelection = {
  query: '{service_name="checkout"}',
  typeId: CPU,
  range: { from: 1_700_000_000_000, to: 1_700_003_600_000 },
  filters: "",
  path: "",
};

it("asks for the functions of a service in a range", () => {
  expect(sqlStatement(SELECTION)).toBe(
    [
      "SELECT function_name, sum(samples.value) AS own",
      "FROM samples",
      "JOIN stack_nodes ON stack_nodes.block_id = samples.block_id AND stack_nodes.stack_id = samples.stack_id",
      "JOIN locations ON locations.block_id = stack_nodes.block_id AND locations.location_id = stack_nodes.location_id",
      `WHERE samples.profile_type = '${CPU}'`,
      "    AND samples.time >= '2023-11-14T22:13:20.000Z'",
      "    AND samples.time < '2023-11-14T23:13:20.000Z'",
      "    AND samples.service_name = 'checkout'",
      "GROUP BY function_name",
      "ORDER BY own DESC",
      "LIMIT 100",
      "-- functions by their own cost, as stored; matchers look at the labels of series",
    ].join("\n"),
  );
});

it("joins the labels of series only where a matcher needs them", () => {
  const statement = sqlStatement({ ...SELECTION, query: `{pod=~"web-.*", zone!='it''s'}` });
  expect(statement).toBeUndefined();
  const matched = sqlStatement({ ...SELECTION, query: `{pod=~"web-.*", zone!="it's"}` });
  expect(matched).toContain("JOIN label_sets");
  expect(matched).toContain("coalesce(label_sets.labels['pod'], '') ~ '^(?:web-.*)$'");
  expect(matched).toContain("coalesce(label_sets.labels['zone'], '') <> 'it''s'");
  expect(sqlStatement(SELECTION)).not.toContain("label_sets");
});

it("adds up both parts of wall-clock time", () => {
  const statement = sqlStatement({ ...SELECTION, typeId: "wall:wall:nanoseconds:wall:nanoseconds" });
  expect(statement).toContain(`samples.profile_type IN ('${CPU}', 'off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds')`);
});

it("says what it leaves out", () => {
  expect(sqlStatement({ ...SELECTION, filters: "focus=main" })).toContain("not part of this statement");
  expect(sqlStatement({ ...SELECTION, filters: "!focus=main" })).not.toContain("not part of this statement");
  expect(sqlStatement({ ...SELECTION, path: "main" })).toContain("not part of this statement");
});
