// Series on one time axis, the heaviest first, the rest summed, stacked for drawing.

import type { PartialHead } from "./columns.ts";
import type { ProfiledTime } from "./cost.ts";
import type { TimeRange } from "./time-range.ts";

/** The answer of `/api/v1/series`. A point is the start of its step and the sum, the rate or the level in it; steps without a profile are absent. */
export interface SeriesAnswer extends PartialHead, ProfiledTime {
  type: string;
  unit: string;
  /** Unix milliseconds. */
  from: number;
  to: number;
  step_ms: number;
  series: ({ labels: Record<string, string>; points: [number, number][] } & ProfiledTime)[];
}

export interface StackOptions {
  /** The label that names a layer. */
  nameLabel: string;
  maximumLayers: number;
  /** The names in the order of the list beside the chart, so that a place in it has one colour; others follow by weight. */
  order?: readonly string[];
  range: TimeRange;
  /** The range ends at now: its last profiles are still on their way. */
  isLive: boolean;
  /** Values are levels: a moment is enough for one. */
  isGauge: boolean;
}

export interface Layer {
  name: string;
  /** What the layer itself is worth. */
  own: (number | null)[];
  /** The sum with all layers below. */
  stacked: (number | null)[];
}

export interface StackedSeries {
  /** Unix seconds, one a step without gaps, and the end of the last step. */
  times: number[];
  /** From the bottom of the stack to its top. */
  layers: Layer[];
  stepSeconds: number;
}

export const OTHER_LAYER = "other services";

/** The agent sends every 10 s what it saw in them: until then, and a moment for the way, a step is not whole. */
const DELIVERY_MILLISECONDS = 12_000;
/** Of a step that the range cuts, at least this part must be inside for its rate to mean something. */
const SMALLEST_PART = 0.5;
/** With fewer points than this an incomplete one is better than none. */
const MINIMUM_POINTS = 3;

export function stackSeries(asked: SeriesAnswer, options: StackOptions): StackedSeries {
  const answer = ofShortRange(asked, options);
  const step = answer.step_ms;
  const steps = stepsOf(answer, options);
  const positions = new Map(steps.map((time, position) => [time, position]));
  const lines = answer.series.map(({ labels, points }) => {
    const own = steps.map((): number | null => null);
    for (const [time, value] of points) {
      const position = positions.get(time);
      if (position !== undefined) own[position] = value;
    }
    return { name: labels[options.nameLabel] ?? "", own };
  });
  const layers = stack(mergeSmallest(lines, options));
  const end = steps.length === 0 ? [] : [steps[steps.length - 1] + step];
  return {
    times: [...steps, ...end].map((time) => time / 1e3),
    layers: layers.map(({ name, own, stacked }) => ({ name, own: closed(own), stacked: closed(stacked) })),
    stepSeconds: step / 1e3,
  };
}

/** A range that is shorter than a step is one step: no finer line is known. Of two steps each counts as far as it lies in the range. */
function ofShortRange(answer: SeriesAnswer, { range, isGauge }: StackOptions): SeriesAnswer {
  const length = range.to - range.from;
  const step = answer.step_ms;
  if (isGauge || length <= 0 || length >= step) return answer;
  const series = answer.series.map((line): SeriesAnswer["series"][number] => {
    const parts = line.points.map(([time, value]) => ({ value, part: partInside(time, step, range) }));
    const whole = parts.reduce((sum, { part }) => sum + part, 0);
    const mean = parts.reduce((sum, { value, part }) => sum + value * part, 0) / whole;
    return { ...line, points: whole > 0 ? [[range.from, mean]] : [] };
  });
  return { ...answer, step_ms: length, series };
}

/** Every step from the first point to the last, without those that are not whole yet or hardly in the range. */
function stepsOf(answer: SeriesAnswer, { range, isLive, isGauge }: StackOptions): number[] {
  const step = answer.step_ms;
  const seen = answer.series.flatMap(({ points }) => points.map(([time]) => time));
  const first = seen.reduce((least, time) => Math.min(least, time), Number.POSITIVE_INFINITY);
  const last = seen.reduce((most, time) => Math.max(most, time), Number.NEGATIVE_INFINITY);
  if (!Number.isFinite(first) || !(step > 0)) return [];
  const steps = Array.from({ length: Math.round((last - first) / step) + 1 }, (_, index) => first + index * step);
  if (isGauge) return steps;
  const whole = steps.filter((time) => {
    if (isLive && time + step > range.to - DELIVERY_MILLISECONDS) return false;
    return partInside(time, step, range) >= SMALLEST_PART;
  });
  return whole.length >= MINIMUM_POINTS ? whole : steps;
}

function partInside(time: number, step: number, { from, to }: TimeRange): number {
  return (Math.min(time + step, to) - Math.max(time, from)) / step;
}

type Line = Pick<Layer, "name" | "own">;

function mergeSmallest(lines: Line[], { maximumLayers: maximum, order = [] }: StackOptions): Line[] {
  const places = new Map(order.map((name, place) => [name, place]));
  const placeOf = ({ name }: Line): number => places.get(name) ?? order.length;
  const sums = new Map(lines.map((line) => [line, line.own.reduce((sum: number, value) => sum + (value ?? 0), 0)]));
  const sorted = lines.toSorted(
    (left, right) => placeOf(left) - placeOf(right) || (sums.get(right) ?? 0) - (sums.get(left) ?? 0),
  );
  const rest = sorted.slice(maximum);
  if (rest.length === 0) return sorted;
  const own = rest[0].own.map((_, position) => addAll(rest.map((line) => line.own[position])));
  return [...sorted.slice(0, maximum), { name: OTHER_LAYER, own }];
}

/** Where no layer has a value there is a gap; where one has, the others are zero. */
function stack(lines: Line[]): Layer[] {
  const below: (number | null)[] = lines[0]?.own.map((_, position) => (lines.some(({ own }) => own[position] !== null) ? 0 : null)) ?? [];
  return lines.map(({ name, own }) => ({
    name,
    own,
    stacked: own.map((value, position) => {
      const base = below[position];
      if (base === null) return null;
      below[position] = base + (value ?? 0);
      return below[position];
    }),
  }));
}

/** The last step is as wide as the others: its value holds until its end. */
function closed<T>(values: T[]): T[] {
  return values.length === 0 ? values : [...values, values[values.length - 1]];
}

/** Below this part of the range the chart shows what there is, and says so: a sliver at the edge shows nothing. */
const SMALLEST_SHOWN_PART = 0.25;
const SHORTEST_AXIS_MILLISECONDS = 120_000;

/** The axis of the chart: the range, or its end while only that has data. */
export function axisRange(answer: SeriesAnswer, range: TimeRange): TimeRange {
  const first = firstPoint(answer);
  if (first === undefined || range.to - first >= (range.to - range.from) * SMALLEST_SHOWN_PART) return range;
  const shown = Math.max(SHORTEST_AXIS_MILLISECONDS, (range.to - first) * 1.25);
  return { from: Math.max(range.from, range.to - shown), to: range.to };
}

/** The earliest point of any series, unix milliseconds. */
export function firstPoint({ series }: SeriesAnswer): number | undefined {
  const first = series.reduce((least, { points }) => Math.min(least, points[0]?.[0] ?? least), Number.POSITIVE_INFINITY);
  return Number.isFinite(first) ? first : undefined;
}

function addAll(values: readonly (number | null)[]): number | null {
  const present = values.filter((value) => value !== null);
  return present.length === 0 ? null : present.reduce((sum, value) => sum + value, 0);
}
