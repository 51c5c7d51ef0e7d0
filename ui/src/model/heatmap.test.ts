import { describe, expect, it } from "vitest";
import { cellAt, cellRange, enclosingRange, heatLevel, heatmapStep, heatSteps, mostProfiles, placeWithin, sampleStep, type CellPlace, type HeatmapAnswer } from "./heatmap.ts";

const answer: HeatmapAnswer = {
  type: "cpu",
  unit: "nanoseconds",
  from: 5_000,
  to: 40_000,
  of: "profiles",
  step_ms: 10_000,
  is_rate: true,
  bounds: [0, 5, 10],
  columns: [{ time: 10_000, counts: [3, 1] }],
};

describe("the step", () => {
  it("is that of the profiles where pixels allow", () => {
    expect(heatmapStep({ from: 0, to: 300e3 }, 800)).toBe(10);
    expect(heatmapStep({ from: 0, to: 86_400e3 }, 800)).toBe(120);
    expect(heatmapStep({ from: 0, to: 1e12 }, 10)).toBe(1e8);
  });
});

describe("shades", () => {
  it("tell one profile from none, and stop at the darkest", () => {
    expect([0, 1, 400, 1000].map((count) => heatLevel(count, 1000))).toEqual([0, 1, 4, 6]);
  });

  it("have a legend that says the same", () => {
    for (const most of [1, 2, 7, 36, 1000]) {
      for (const { level, from, to } of heatSteps(most)) {
        expect(heatLevel(from, most)).toBe(level);
        expect(heatLevel(to, most)).toBe(level);
      }
    }
    expect(heatSteps(1)).toEqual([{ level: 6, from: 1, to: 1 }]);
    expect(mostProfiles(answer)).toBe(3);
  });
});

describe("a cell", () => {
  it("says its time, its values and how many profiles it has", () => {
    expect(cellAt(answer, 13_000, 1)).toEqual({ time: 10_000, row: 1, count: 1, profiles: 4, low: 5, high: 10 });
    expect(cellAt(answer, 23_000, 0)).toMatchObject({ count: 0, profiles: 0 });
    expect(cellAt(answer, 13_000, 2)).toBeUndefined();
  });
});

const samples: HeatmapAnswer = { ...answer, of: "samples", step_ms: 1000, bounds: [0, 250, 500, 750, 1000] };

function between(picture: HeatmapAnswer, one: CellPlace, other: CellPlace) {
  return enclosingRange(cellRange(picture, one), cellRange(picture, other));
}

describe("a rectangle", () => {
  it("of profiles is whole columns, whichever row", () => {
    expect(between(answer, { time: 20_000, row: 1 }, { time: 10_000, row: 0 })).toEqual({ from: 10_000, to: 30_000 });
  });

  it("of samples begins and ends within columns", () => {
    expect(between(samples, { time: 6000, row: 2 }, { time: 8000, row: 0 })).toEqual({ from: 6500, to: 8250 });
    expect(between(samples, { time: 8000, row: 0 }, { time: 6000, row: 2 })).toEqual({ from: 6500, to: 8250 });
    expect(between(samples, { time: 5000, row: 3 }, { time: 5000, row: 1 })).toEqual({ from: 5250, to: 6000 });
  });

  it("keeps where it began when the picture moves on below it", () => {
    const began = cellRange(samples, placeWithin(samples, { from: 5000, to: 65_000 }, { time: 7100, row: 1 }));
    const ended = cellRange(samples, placeWithin(samples, { from: 15_000, to: 75_000 }, { time: 20_900, row: 2 }));
    expect(enclosingRange(began, ended)).toEqual({ from: 7250, to: 20_750 });
  });
});

describe("a place", () => {
  it("is a column and a row that the picture has", () => {
    const axis = { from: 5400, to: 9000 };
    expect(placeWithin(samples, axis, { time: 7999, row: 1 })).toEqual({ time: 7000, row: 1 });
    expect(placeWithin(samples, axis, { time: 1000, row: -1 })).toEqual({ time: 5000, row: 0 });
    expect(placeWithin(samples, axis, { time: 9000, row: 49 })).toEqual({ time: 8000, row: 3 });
  });
});

describe("the step of samples", () => {
  it("is a second where there is room", () => {
    expect(sampleStep({ from: 0, to: 300e3 }, 1000)).toBe(1);
    expect(sampleStep({ from: 0, to: 3600e3 }, 1000)).toBe(15);
    expect(sampleStep({ from: 0, to: 86_400e3 }, 1000)).toBe(300);
  });
});
