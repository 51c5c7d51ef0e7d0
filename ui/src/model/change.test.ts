import { describe, expect, it } from "vitest";
import {
  CHANGE_LEVELS,
  changeLevel,
  formatDifference,
  formatDifferenceShare,
  formatRelative,
  presence,
} from "./change.ts";

describe("changeLevel", () => {
  it.each([
    [0, 100, CHANGE_LEVELS],
    [100, 0, -CHANGE_LEVELS],
    [50, 50, 0],
    [50, 110, 3],
  ])("%d to %d is step %d of a largest change of 100", (before, after, level) => {
    expect(changeLevel(before, after, 100)).toBe(level);
  });

  it("tells the smallest change from none", () => {
    expect(changeLevel(1, 2, 1e9)).toBe(1);
    expect(changeLevel(2, 1, 1e9)).toBe(-1);
  });

  it("knows no strength where nothing changed", () => {
    expect(changeLevel(0, 0, 0)).toBe(0);
  });
});

describe("words for a change", () => {
  it.each([
    [0, 1.2e9, "+1.20 s", "new"],
    [1.2e9, 0, "−1.20 s", "gone"],
    [1e9, 1.12e9, "+120 ms", "+12 %"],
    [1e9, 5e9, "+4.00 s", "×5.0"],
    [1e9, 1e9, "±0", "±0 %"],
    [0, 0, "±0", "–"],
  ])("%d to %d nanoseconds: %s, %s", (before, after, difference, relative) => {
    expect(formatDifference(before, after, "nanoseconds")).toBe(difference);
    expect(formatRelative(before, after)).toBe(relative);
  });

  it("gives a change as a part of a whole", () => {
    expect(formatDifferenceShare(10, 30, 200)).toBe("+10.0 %");
    expect(formatDifferenceShare(30, 10, 200)).toBe("−10.0 %");
    expect(formatDifferenceShare(10, 10, 200)).toBe("0.00 %");
    expect(formatDifferenceShare(10, 30, 0)).toBe("–");
  });
});

it("presence tells what only one side has", () => {
  expect([presence(0, 3), presence(3, 0), presence(3, 4), presence(0, 0)]).toEqual(["new", "gone", "both", "both"]);
});
