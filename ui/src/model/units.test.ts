import { describe, expect, it } from "vitest";
import {
  formatBytes,
  formatChange,
  formatCount,
  formatNanoseconds,
  formatRate,
  formatShare,
  formatValue,
} from "./units.ts";

describe("formatValue", () => {
  it.each([
    [0, "0 s"],
    [950, "950 ns"],
    [1_500, "1.50 µs"],
    [999_400_000, "999 ms"],
    [999_600_000, "1.00 s"],
    [59_940_000_000, "59.9 s"],
    [60_000_000_000, "1 min"],
    [252_000_000_000, "4 min 12 s"],
    [12_000_000_000_000, "3 h 20 min"],
    [187_200_000_000_000, "2 d 4 h"],
  ])("%d ns", (value, expected) => expect(formatNanoseconds(value)).toBe(expected));

  it.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.00 KiB"],
    [3_565_158, "3.40 MiB"],
    [1024 ** 3 - 1, "1.00 GiB"],
  ])("%d bytes", (value, expected) => expect(formatBytes(value)).toBe(expected));

  it.each([
    [0, "0 "],
    [999, "999"],
    [12_345, "12.3 k"],
    [999_999, "1.00 M"],
  ])("%d counts", (value, expected) => expect(formatCount(value).trim()).toBe(expected.trim()));

  it("chooses by unit", () => {
    expect(formatValue(2e9, "nanoseconds")).toBe("2.00 s");
    expect(formatValue(2048, "bytes")).toBe("2.00 KiB");
    expect(formatValue(2048, "count")).toBe("2.05 k");
  });
});

describe("formatRate", () => {
  it("turns CPU time per time into cores, other times not", () => {
    expect(formatRate(126e9 / 300, "nanoseconds", true)).toBe("0.42 cores");
    expect(formatRate(126e9 / 300, "nanoseconds", false)).toBe("0.42 s/s");
    expect(formatRate(1 / 300, "nanoseconds", true)).toBe("<0.001 cores");
    expect(formatRate(300 * 1024 / 300, "bytes", false)).toBe("1.00 KiB/s");
    expect(formatRate(600 / 300, "count", false)).toBe("2/s");
  });
});

describe("formatShare and formatChange", () => {
  it.each([
    [1, 4, "25.0 %"],
    [1, 1000, "0.10 %"],
    [1, 1e9, "<0.01 %"],
    [0, 10, "0.00 %"],
    [10, 10, "100 %"],
    [1, 0, "–"],
  ])("%d of %d", (part, whole, expected) => expect(formatShare(part, whole)).toBe(expected));

  it.each([
    [112, 100, "+12 %"],
    [97, 100, "−3.0 %"],
    [100, 100, "±0 %"],
    [420, 100, "×4.2"],
    [5, 0, "new"],
    [0, 0, "–"],
  ])("%d after %d", (now, before, expected) => expect(formatChange(now, before)).toBe(expected));
});
