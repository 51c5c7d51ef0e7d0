import { describe, expect, it } from "vitest";
import { growth, orderedServices, serviceRows, rowOfAll } from "./service-table.ts";
import type { ServicesAnswer } from "./services.ts";

const SECOND = 1e9;
const entry = (service: string, total: number, previous: number) => ({
  service,
  total: total * SECOND,
  previous_total: previous * SECOND,
  types: [],
  sparkline: [total],
  profiled_ms: 50_000,
  previous_profiled_ms: previous > 0 ? 100_000 : null,
});

const answer: ServicesAnswer = {
  type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
  unit: "nanoseconds",
  from: 100_000,
  to: 200_000,
  previous_first_ms: 0,
  profiled_ms: 80_000,
  previous_profiled_ms: 100_000,
  services: [entry("search", 600, 300), entry("checkout", 300, 600), entry("fresh", 100, 0)],
};

describe("rows of services", () => {
  it("are rates over the time that each was profiled, and shares of all", () => {
    const [search, , fresh] = serviceRows(answer);
    expect(search).toMatchObject({ share: 0.6, cost: "12.0 cores", rank: 0 });
    expect(search.pace).toEqual({ now: 12 * SECOND, before: 3 * SECOND });
    expect(fresh.pace).toEqual({ now: 2 * SECOND, before: 0 });
  });

  it("are totals where no profile says how long it took", () => {
    const untimed = { ...entry("search", 600, 300), profiled_ms: null };
    const [search] = serviceRows({ ...answer, services: [untimed] });
    expect(search).toMatchObject({ cost: "10 min", pace: undefined });
  });

  it("add up to one, over the time that anything was profiled", () => {
    const all = rowOfAll(answer, serviceRows(answer));
    expect(all).toEqual({ cost: "12.5 cores", pace: { now: 12.5 * SECOND, before: 9 * SECOND }, sparkline: [1000] });
    expect(rowOfAll({ ...answer, previous_first_ms: null }, []).pace).toBeUndefined();
  });

  it("know of no change where the period before was not observed", () => {
    const [search] = serviceRows({ ...answer, previous_first_ms: null });
    expect(growth(search)).toBeUndefined();
  });

  it("leave out services that have nothing of this type", () => {
    const idle = { ...answer, services: [...answer.services, entry("idle", 0, 0)] };
    expect(serviceRows(idle)).toHaveLength(3);
  });

  it("are ordered by each column, a new service having grown most", () => {
    const rows = serviceRows(answer);
    const order = (column: "service" | "change" | "cost", descending: boolean) =>
      orderedServices(answer, rows, "", column, descending).map(({ service }) => service);
    expect(order("service", false)).toEqual(["checkout", "fresh", "search"]);
    expect(order("cost", true)).toEqual(["search", "checkout", "fresh"]);
    expect(order("change", true)).toEqual(["fresh", "search", "checkout"]);
    expect(orderedServices(answer, rows, "EAR", "cost", true)).toHaveLength(1);
  });
});
