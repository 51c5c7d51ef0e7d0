import { describe, expect, it } from "vitest";
import { describeRange, resolveTime, seriesStep } from "./time-range.ts";

const NOW = Date.UTC(2026, 10, 21, 10, 0, 0);

describe("resolveTime", () => {
  it.each([
    ["now", NOW],
    ["now-1h", NOW - 3_600_000],
    ["now-1.5m", NOW - 90_000],
    ["1795255200", 1_795_255_200_000],
    ["1795255200000", 1_795_255_200_000],
    ["2026-11-21T09:00:00Z", NOW - 3_600_000],
  ])("%s", (text, expected) => expect(resolveTime(text, NOW)).toBe(expected));

  it.each(["", "yesterday", "now+1h", "now-1y", "12:30"])("refuses %j", (text) =>
    expect(resolveTime(text, NOW)).toBeUndefined(),
  );
});

it("describes presets by name and other ranges by their ends", () => {
  const range = { from: NOW - 3_600_000, to: NOW };
  expect(describeRange("now-1h", "now", range)).toBe("Last hour");
  expect(describeRange("now-90m", "now", range)).toBe("Last 90m");
  expect(describeRange(String(range.from), String(range.to), range)).toMatch(/^2026-11-21 \d\d:00:00 – /);
});

it("keeps the series within four hundred points, and never below two intervals of the agent", () => {
  for (const seconds of [60, 300, 3600, 43_200, 86_400, 7 * 86_400, 400 * 86_400]) {
    const step = seriesStep({ from: NOW - seconds * 1e3, to: NOW });
    expect(step).toBeGreaterThanOrEqual(20);
    expect(seconds / step).toBeLessThanOrEqual(400);
  }
});
