import { describe, expect, it } from "vitest";
import {
  filterServices,
  mergedSparkline,
  observedSpan,
  previousSeconds,
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

describe("observedSpan", () => {
  it("begins with the first profile of any service", () => {
    const started = answer({ first_ms: 2 * HOUR - 100_000, services: [entry("a", [0, 0, 0, 1])] });
    expect(observedSpan(started, 0).seconds).toBe(100);
    expect(observedSpan(answer({ first_ms: HOUR + 500 }), 0).seconds).toBe(3599.5);
    // A profile that began before the range does not make it longer.
    expect(observedSpan(answer({ first_ms: HOUR - 500 }), 0).seconds).toBe(3600);
  });

  it("ends where a live range has not been delivered yet", () => {
    expect(observedSpan(answer({ first_ms: 2 * HOUR - 100_000 }), 15_000)).toEqual({
      from: 2 * HOUR - 100_000,
      to: 2 * HOUR - 15_000,
      seconds: 85,
    });
  });

  it("takes the sparklines' word where the server does not say", () => {
    expect(observedSpan(answer({ services: [entry("a", [0, 0, 0, 1]), entry("b", [0, 0, 1, 0])] }), 0).seconds).toBe(1800);
    expect(observedSpan(answer({ services: [entry("a", [0, 0])] }), 0).seconds).toBe(3600);
    // More exactly where the series of all services begins in that bucket.
    const started = answer({ services: [entry("a", [0, 0, 0, 1])] });
    expect(observedSpan(started, 0, 2 * HOUR - 100_000).seconds).toBe(100);
    expect(observedSpan(started, 0, 1.5 * HOUR).seconds).toBe(900);
    expect(observedSpan({ ...started, first_ms: 2 * HOUR - 200_000 }, 0, 2 * HOUR - 100_000).seconds).toBe(200);
    expect(observedSpan(answer({ first_ms: null }), 0).seconds).toBe(3600);
  });
});

it("compares only with a period that was observed", () => {
  expect(previousSeconds(answer({ previous_first_ms: 0 }))).toBe(3600);
  expect(previousSeconds(answer({ previous_first_ms: 0.04 * HOUR }))).toBeCloseTo(3456);
  // Seventy minutes after the start: ten minutes of the hour before were seen.
  expect(previousSeconds(answer({ previous_first_ms: HOUR - 600_000 }))).toBeUndefined();
  expect(previousSeconds(answer({ previous_first_ms: null }))).toBeUndefined();
  expect(previousSeconds(answer())).toBeUndefined();
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

  it("leaves out what is still on its way, and scales what has come in part", () => {
    const span = { from: 0, to: HOUR };
    const values = [4, 4, 4, 3];
    expect(mergedSparkline(values, { ...span, end_ms: HOUR - 0.0625 * HOUR })).toEqual([4, 4, 4, 4]);
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
