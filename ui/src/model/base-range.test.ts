import { describe, expect, it } from "vitest";
import { BASE_PRESETS, baseRange, presetTimes } from "./base-range.ts";

const SHOWN = { from: 1_700_000_000_000, to: 1_700_003_600_000 };
const NOW = SHOWN.to;

describe("the range of the base", () => {
  it("is the one before when nothing is said", () => {
    expect(baseRange({ baseFrom: "", baseTo: "" }, SHOWN, NOW)).toEqual({ from: 1_699_996_400_000, to: 1_700_000_000_000 });
  });

  it("is what the texts say", () => {
    expect(baseRange({ baseFrom: "now-2h", baseTo: "now-1h" }, SHOWN, NOW)).toEqual({
      from: NOW - 7_200_000,
      to: NOW - 3_600_000,
    });
    expect(baseRange({ baseFrom: "soon", baseTo: "now" }, SHOWN, NOW)).toBeUndefined();
    expect(baseRange({ baseFrom: "now", baseTo: "now-1h" }, SHOWN, NOW)).toBeUndefined();
  });

  it("follows a preset", () => {
    const [before, day] = BASE_PRESETS;
    expect(presetTimes(before, SHOWN)).toEqual({ baseFrom: "", baseTo: "" });
    const times = presetTimes(day, SHOWN);
    expect(baseRange(times, SHOWN, NOW)).toEqual({ from: SHOWN.from - 86_400_000, to: SHOWN.to - 86_400_000 });
  });
});
