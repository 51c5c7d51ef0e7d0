import { describe, expect, it } from "vitest";
import { coveredSeconds, filterServices, hasPreviousPeriod, type ServiceEntry } from "./services.ts";

const entry = (service: string, sparkline: number[], previous = 0): ServiceEntry => ({
  service,
  total: 1,
  previous_total: previous,
  types: [],
  sparkline,
});
const HOUR = { from: 0, to: 3_600_000 };

describe("coveredSeconds", () => {
  it("starts with the first bucket in which any service was seen", () => {
    expect(coveredSeconds([entry("a", [0, 0, 0, 1]), entry("b", [0, 0, 1, 0])], HOUR)).toBe(1800);
    expect(coveredSeconds([entry("a", [1, 0, 0, 0])], HOUR)).toBe(3600);
  });

  it("is as exact as the series where that begins in the first bucket", () => {
    const started = [entry("a", [0, 0, 0, 1])];
    expect(coveredSeconds(started, HOUR, 3_500_000)).toBe(100);
    expect(coveredSeconds(started, HOUR, 3_599_900)).toBe(1);
    expect(coveredSeconds([entry("a", [1, 0, 0, 1])], HOUR, 3_500_000)).toBe(3600);
  });

  it("is the range where nothing is known", () => {
    expect(coveredSeconds([], HOUR)).toBe(3600);
    expect(coveredSeconds([entry("a", [0, 0])], HOUR)).toBe(3600);
  });
});

it("filters by every word, and keeps the order", () => {
  const all = [entry("python:recommend.py", []), entry("recommend-cache", []), entry("checkout", [])];
  expect(filterServices(all, "REC py").map(({ service }) => service)).toEqual(["python:recommend.py"]);
  expect(filterServices(all, " ")).toHaveLength(3);
});

it("knows whether there is a period to compare with", () => {
  expect(hasPreviousPeriod([entry("a", []), entry("b", [], 3)])).toBe(true);
  expect(hasPreviousPeriod([entry("a", [])])).toBe(false);
});
