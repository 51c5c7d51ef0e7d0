import { describe, expect, it } from "vitest";
import { growth, orderedServices, serviceRows, sumOfRows } from "./service-table.ts";
import type { ServicesAnswer } from "./services.ts";

const entry = (service: string, total: number, previous: number) => ({
  service,
  total,
  previous_total: previous,
  types: [],
  sparkline: [total],
});

const answer: ServicesAnswer = {
  type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
  unit: "nanoseconds",
  from: 100_000,
  to: 200_000,
  previous_first_ms: 0,
  services: [entry("search", 600, 300), entry("checkout", 300, 600), entry("fresh", 100, 0)],
};

describe("rows of services", () => {
  it("are rates and shares of all", () => {
    const [search] = serviceRows(answer, 50);
    expect(search).toMatchObject({ share: 0.6, now: 12, before: 3, rank: 0 });
  });

  it("add up to one, whose change is that of all", () => {
    const sum = sumOfRows(serviceRows(answer, 50));
    expect(sum).toEqual({ now: 20, before: 9, sparkline: [1000] });
    expect(sumOfRows(serviceRows({ ...answer, previous_first_ms: null }, 50)).before).toBeUndefined();
  });

  it("know of no change where the period before was not observed", () => {
    const [search] = serviceRows({ ...answer, previous_first_ms: null }, 100);
    expect(growth(search)).toBeUndefined();
  });

  it("leave out services that have nothing of this type", () => {
    const idle = { ...answer, services: [...answer.services, entry("idle", 0, 0)] };
    expect(serviceRows(idle, 100)).toHaveLength(3);
  });

  it("are ordered by each column, a new service having grown most", () => {
    const rows = serviceRows(answer, 100);
    const order = (column: "service" | "change" | "cost", descending: boolean) =>
      orderedServices(answer, rows, "", column, descending).map(({ service }) => service);
    expect(order("service", false)).toEqual(["checkout", "fresh", "search"]);
    expect(order("cost", true)).toEqual(["search", "checkout", "fresh"]);
    expect(order("change", true)).toEqual(["fresh", "search", "checkout"]);
    expect(orderedServices(answer, rows, "EAR", "cost", true)).toHaveLength(1);
  });
});
