import { describe, expect, it } from "vitest";
import {
  filterServices,
  isComparable,
  mergedSparkline,
  type ServiceEntry,
  type ServicesAnswer,
} from "./services.ts";

const entry = (service: string, sparkline: number[]): ServiceEntry => ({
  service,
  total: 1,
  previous_total: 0,
  types: [],
  sparkline,
});
const HOUR = 3_600_000;
const answer = (patch: Partial<ServicesAnswer> = {}): ServicesAnswer => ({
  type: "t",
  unit: "nanoseconds",
  from: HOUR,
  to: 2 * HOUR,
  services: [],
  ...patch,
});

it("compares only with a period that was observed", () => {
  expect(isComparable(answer({ previous_first_ms: 0 }))).toBe(true);
  expect(isComparable(answer({ previous_first_ms: 0.04 * HOUR }))).toBe(true);
  // Seventy minutes after the start: ten minutes of the hour before were seen.
  expect(isComparable(answer({ previous_first_ms: HOUR - 600_000 }))).toBe(false);
  expect(isComparable(answer({ previous_first_ms: null }))).toBe(false);
  expect(isComparable(answer())).toBe(false);
});

describe("mergedSparkline", () => {
  it("sums buckets narrower than a minute, the newest whole", () => {
    const comb = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? 10 : 0));
    // 5 minutes in 40 buckets of 7.5 s: eight each.
    expect(mergedSparkline(comb, { from: 0, to: 300_000 })).toEqual([40, 40, 40, 40, 40]);
  });

  it("scales what is left over at the beginning", () => {
    expect(mergedSparkline([1, 1, 1, 1, 1], { from: 0, to: 150_000 })).toEqual([2, 2, 2]);
  });

  it("leaves out what is still on its way", () => {
    const span = { from: 0, to: HOUR };
    const values = [4, 4, 4, 3];
    // The server says what a bucket would have come to as a whole: three quarters of one say enough.
    expect(mergedSparkline(values, { ...span, end_ms: HOUR - 0.0625 * HOUR })).toEqual(values);
    expect(mergedSparkline([4, 4, 4, 1], { ...span, end_ms: HOUR - 0.1875 * HOUR })).toEqual([4, 4, 4]);
    // Half an hour ago everything stopped: that is a fall.
    expect(mergedSparkline([4, 4, 0, 0], { ...span, end_ms: HOUR / 2 })).toEqual([4, 4, 0, 0]);
    expect(mergedSparkline(values, { ...span, end_ms: HOUR })).toEqual(values);
  });

  it("leaves wide buckets as they are", () => {
    expect(mergedSparkline([1, 0, 3], { from: 0, to: HOUR })).toEqual([1, 0, 3]);
  });
});

it("filters by every word, and keeps the order", () => {
  const all = [entry("python:recommend.py", []), entry("recommend-cache", []), entry("checkout", [])];
  expect(filterServices(all, "REC py").map(({ service }) => service)).toEqual(["python:recommend.py"]);
  expect(filterServices(all, " ")).toHaveLength(3);
});
