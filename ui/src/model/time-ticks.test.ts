import { expect, it } from "vitest";
import { formatLength, timeTicks } from "./time-ticks.ts";

it("ticks are round times, a few of them", () => {
  expect(timeTicks(1_000_003, 1_000_013, 5)).toEqual({ times: [1_000_004, 1_000_006, 1_000_008, 1_000_010, 1_000_012], step: 2 });
  expect(timeTicks(0, 3600e3, 6).step).toBe(600e3);
  expect(timeTicks(0, 30 * 86_400e3, 10).step).toBe(3 * 86_400e3);
  expect(timeTicks(0, 1e-6, 5).times.length).toBeLessThan(7);
});

it("lengths are told in the unit that fits", () => {
  expect([0.02, 1, 12.34, 250, 999.9, 2250].map(formatLength)).toEqual(["20 µs", "1 ms", "12.3 ms", "250 ms", "999.9 ms", "2.25 s"]);
});
