import { describe, expect, it } from "vitest";
import { describeRange, formatClock, resolveTime, seriesStep, timeParameter, widened } from "./time-range.ts";

const NOW = Date.UTC(2026, 10, 21, 10, 0, 0);

describe("resolveTime", () => {
  it.each([
    ["now", NOW],
    ["now-1h", NOW - 3_600_000],
    ["now-1h30m", NOW - 5_400_000],
    ["now+5m", NOW + 300_000],
    ["now-500ms", NOW - 500],
    ["now-1M", NOW - 30 * 86_400_000],
    ["now-1y", NOW - 365 * 86_400_000],
    ["2026-11-21T11:00:00.5+01:00", NOW + 500],
    ["1795255200", 1_795_255_200_000],
    ["1795255200000", 1_795_255_200_000],
    ["2026-11-21T09:00:00Z", NOW - 3_600_000],
  ])("%s", (text, expected) => expect(resolveTime(text, NOW)).toBe(expected));

  it.each(["", "yesterday", "now-", "now-h", "now-1", "now1h", "now-1.5m", "12:30", "2026-11-21", "2026-11-21T10:00", "1e14", "100000000000000"])("refuses %j", (text) =>
    expect(resolveTime(text, NOW)).toBeUndefined(),
  );
});

it("describes presets by name and other ranges by their ends", () => {
  const range = { from: NOW - 3_600_000, to: NOW };
  expect(describeRange("now-1h", "now", range)).toBe("Last hour");
  expect(describeRange("now-90m", "now", range)).toBe("Last 90m");
  expect(describeRange(String(range.from), String(range.to), range)).toMatch(/^2026-11-21 \d\d:00 – /);
});

it("takes dates without a zone for the reader's", () => {
  expect(timeParameter("2026-11-21")).toBe(String(new Date(2026, 10, 21).getTime()));
  expect(timeParameter(" 2026-11-21 10:30 ")).toBe(String(new Date(2026, 10, 21, 10, 30).getTime()));
  expect(timeParameter("2026-11-21T10:30:05")).toBe(String(new Date(2026, 10, 21, 10, 30, 5).getTime()));
  for (const text of ["now-90m", "2026-11-21T10:00:00Z", "1795255200", "tomorrow"]) expect(timeParameter(text)).toBe(text);
});

describe("twice the range", () => {
  const hour = { from: NOW - 3_600_000, to: NOW };

  it("of one that moves with the time goes on moving", () => {
    // The picture is some seconds old.
    expect(widened("now-1h", "now", hour, NOW + 7_000)).toEqual({ from: "now-2h", to: "now" });
    expect(widened("now-90m", "now", { ...hour, from: NOW - 5_400_000 }, NOW)).toEqual({ from: "now-3h", to: "now" });
    expect(widened("now-45s", "now", { ...hour, from: NOW - 45_000 }, NOW)).toEqual({ from: "now-90s", to: "now" });
    const before = { from: NOW - 3 * 3_600_000, to: NOW - 3_600_000 };
    expect(widened("now-3h", "now-1h", before, NOW)).toEqual({ from: "now-4h", to: "now" });
  });

  it("of a fixed one keeps its centre, but does not reach into the future", () => {
    expect(widened(String(hour.from), String(hour.to), hour, NOW + 7_200_000)).toEqual({
      from: String(NOW - 5_400_000),
      to: String(NOW + 1_800_000),
    });
    expect(widened(String(hour.from), String(hour.to), hour, NOW)).toEqual({
      from: String(NOW - 7_200_000),
      to: String(NOW),
    });
  });
});

it("keeps the series within four hundred points, and never below two intervals of the agent", () => {
  for (const seconds of [60, 300, 3600, 43_200, 86_400, 7 * 86_400, 400 * 86_400]) {
    const step = seriesStep({ from: NOW - seconds * 1e3, to: NOW });
    expect(step).toBeGreaterThanOrEqual(20);
    expect(seconds / step).toBeLessThanOrEqual(400);
  }
});

describe("times in UTC", () => {
  const from = Date.UTC(2026, 10, 21, 23, 30);
  const to = Date.UTC(2026, 10, 22, 0, 30);

  it("are the same moments, whatever the zone of the reader", () => {
    expect(formatClock(from, { date: true, isUtc: true })).toBe("2026-11-21 23:30:00");
    expect(describeRange(String(from), String(to), { from, to }, true)).toBe("2026-11-21 23:30 – 2026-11-22 00:30 UTC");
    expect(describeRange("", "", { from: from + 5e3, to }, true)).toBe("2026-11-21 23:30:05 – 2026-11-22 00:30:00 UTC");
  });

  it("are read as they are written", () => {
    expect(timeParameter("2026-11-21 23:30:00", true)).toBe(String(from));
    expect(timeParameter("now-1h", true)).toBe("now-1h");
  });

  it("are those of the reader without the choice", () => {
    expect(timeParameter(formatClock(from, { date: true }))).toBe(String(from));
  });
});

it("tells a moment within a second to the millisecond", () => {
  const from = Date.parse("2026-11-21T10:00:00.250Z");
  expect(describeRange(String(from), String(from + 500), { from, to: from + 500 }, true)).toBe(
    "2026-11-21 10:00:00.250 – 10:00:00.750 UTC",
  );
});
