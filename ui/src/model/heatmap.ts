// The heatmap, of single profiles by their values or of samples by their moments within a column: how fine it may be, how dark a cell
// is, and what is below the pointer.

import type { PartialHead } from "./columns.ts";
import type { TimeRange } from "./time-range.ts";

/** The answer of `/api/v1/heatmap`: `bounds` has one entry more than there are rows. */
export interface HeatmapAnswer extends PartialHead {
  type: string;
  unit: string;
  from: number;
  to: number;
  /** Of samples, `bounds` are milliseconds from the start of a column. */
  of: "profiles" | "samples";
  /** Stored samples whose time is known, and those of which only the profile is known. */
  hint?: string;
  timed?: number;
  untimed?: number;
  step_ms: number;
  is_rate: boolean;
  bounds: number[];
  columns: { time: number; counts: number[] }[];
}

/** Shades of the palette, from one profile to the most of any cell. */
export const HEAT_LEVELS = 6;

/** An agent sends a profile every 10 s: narrower columns would be empty in between. */
const FINEST_STEP_SECONDS = 10;
const STEP_CHOICES_SECONDS = [10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21_600, 43_200, 86_400];

/** Seconds a column stands for: as fine as the profiles or the pixels allow. */
export function heatmapStep({ from, to }: TimeRange, pixels: number): number {
  const finest = Math.max(FINEST_STEP_SECONDS, (to - from) / 1e3 / Math.max(1, pixels));
  return STEP_CHOICES_SECONDS.find((step) => step >= finest) ?? Math.ceil(finest);
}

const SAMPLE_STEPS_SECONDS = [1, 5, 15, 60, 300, 900, 3600, 14_400, 86_400];
/** A column of samples is as wide as it can be pointed at. */
const SAMPLE_COLUMN_PIXELS = 3;

/** The same for samples: a second where there is room for it. */
export function sampleStep({ from, to }: TimeRange, pixels: number): number {
  const finest = (SAMPLE_COLUMN_PIXELS * (to - from)) / 1e3 / Math.max(1, pixels);
  return SAMPLE_STEPS_SECONDS.find((step) => step >= finest) ?? Math.ceil(finest);
}

/** A cell by the start of its column, unix milliseconds, and its row: a picture that moves on leaves it the same cell. */
export interface CellPlace {
  time: number;
  row: number;
}

/** The cell at `time` and `row`, or the nearest that the picture has. */
export function placeWithin({ step_ms: step, bounds }: HeatmapAnswer, axis: TimeRange, { time, row }: CellPlace): CellPlace {
  const [first, last] = [Math.floor(axis.from / step), Math.ceil(axis.to / step) - 1];
  return {
    time: Math.max(first, Math.min(last, Math.floor(time / step))) * step,
    row: Math.max(0, Math.min(bounds.length - 2, row)),
  };
}

/** The time of a cell, unix milliseconds. Rows of samples are moments, those of profiles are not. */
export function cellRange({ of, step_ms: step, bounds }: HeatmapAnswer, { time, row }: CellPlace): TimeRange {
  if (of !== "samples") return { from: time, to: time + step };
  return { from: Math.floor(time + bounds[row]), to: Math.ceil(time + bounds[row + 1]) };
}

/** What a rectangle from one cell to another means. */
export function enclosingRange(one: TimeRange, other: TimeRange): TimeRange {
  return { from: Math.min(one.from, other.from), to: Math.max(one.to, other.to) };
}

export function mostProfiles({ columns }: HeatmapAnswer): number {
  return columns.reduce((most, { counts }) => Math.max(most, ...counts), 0);
}

/** From 1 to `HEAT_LEVELS`, 0 for none. By the root: a few profiles beside many stay visible. */
export function heatLevel(count: number, most: number): number {
  if (count <= 0 || most <= 0) return 0;
  return Math.max(1, Math.min(HEAT_LEVELS, Math.ceil(HEAT_LEVELS * Math.sqrt(count / most))));
}

/** The least and the most profiles that have each shade, for the legend; shades that no count has are left out. */
export function heatSteps(most: number): { level: number; from: number; to: number }[] {
  const steps: { level: number; from: number; to: number }[] = [];
  for (let level = 1; level <= HEAT_LEVELS; level++) {
    const from = level === 1 ? 1 : Math.floor(most * ((level - 1) / HEAT_LEVELS) ** 2) + 1;
    const to = Math.floor(most * (level / HEAT_LEVELS) ** 2);
    if (to >= from) steps.push({ level, from, to });
  }
  return steps;
}

export interface HeatCell {
  /** Start of the step, unix milliseconds. */
  time: number;
  /** Row, the lowest values first. */
  row: number;
  count: number;
  /** Of all rows of the column. */
  profiles: number;
  low: number;
  high: number;
}

export function cellAt(answer: HeatmapAnswer, time: number, row: number): HeatCell | undefined {
  const rows = answer.bounds.length - 1;
  if (row < 0 || row >= rows) return undefined;
  const start = Math.floor(time / answer.step_ms) * answer.step_ms;
  const counts = answer.columns.find((column) => column.time === start)?.counts ?? [];
  return {
    time: start,
    row,
    count: counts[row] ?? 0,
    profiles: counts.reduce((sum, count) => sum + count, 0),
    low: answer.bounds[row],
    high: answer.bounds[row + 1],
  };
}
