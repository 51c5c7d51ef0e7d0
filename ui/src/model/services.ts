// What the services list says about each service, worked out from `/api/v1/services`.

import type { PartialHead } from "./columns.ts";
import type { TimeRange } from "./time-range.ts";

/** One entry of `/api/v1/services`. Values are in the answer's unit. */
export interface ServiceEntry {
  service: string;
  total: number;
  previous_total: number;
  types: string[];
  sparkline: number[];
}

export interface ServicesAnswer extends PartialHead {
  type: string;
  unit: string;
  from: number;
  to: number;
  services: ServiceEntry[];
  /** The earliest profile of any service in the range, and in the range of the same length before it; null without one. */
  first_ms?: number | null;
  previous_first_ms?: number | null;
  /** The end of the latest profile of any service in the range; null without one. */
  end_ms?: number | null;
  hint?: string;
}

/** What was observed of a range. */
export interface ObservedSpan extends TimeRange {
  seconds: number;
}

export function sumOfTotals(services: readonly ServiceEntry[]): number {
  return services.reduce((sum, { total }) => sum + total, 0);
}

/**
 * The part of the range in which anything was recorded. An agent that started ten minutes ago has not been idle for the fifty
 * before: averaging over the whole hour would show a sixth of the true load. Nor was it idle in the end of a live range that is
 * still on its way (`undelivered`, milliseconds). A service that began long after the others was idle before.
 */
export function observedSpan(answer: ServicesAnswer, undelivered: number, firstPoint?: number): ObservedSpan {
  const from = Math.max(answer.from, answer.first_ms ?? firstUsedBucket(answer, firstPoint));
  const to = answer.to - undelivered;
  return { from, to, seconds: Math.max(1, (to - from) / 1e3) };
}

/**
 * The same from a server that does not say: to a bucket of the sparklines, and within it to the first point of the series of all
 * services. That of one service would not do: an agent may have watched the host for a minute before the service came.
 */
function firstUsedBucket({ services, from, to }: ServicesAnswer, firstPoint: number | undefined): number {
  const buckets = Math.max(0, ...services.map(({ sparkline }) => sparkline.length));
  const first = Math.min(...services.map(({ sparkline }) => firstUsed(sparkline)));
  if (buckets === 0 || !Number.isFinite(first)) return from;
  const width = (to - from) / buckets;
  const start = from + width * first;
  const isWithin = firstPoint !== undefined && firstPoint > start && firstPoint < start + width;
  return isWithin ? firstPoint : start;
}

function firstUsed(sparkline: readonly number[]): number {
  const first = sparkline.findIndex((value) => value > 0);
  return first === -1 ? Number.POSITIVE_INFINITY : first;
}

/** Of the range before, at least this part must have been observed to be compared with. */
const SMALLEST_OBSERVED_PART = 0.95;

/** The seconds the previous totals were observed in; `undefined` when that is too little, or unknown. */
export function previousSeconds({ from, to, previous_first_ms: first }: ServicesAnswer): number | undefined {
  if (first === undefined || first === null) return undefined;
  const length = to - from;
  const observed = from - first;
  return observed >= length * SMALLEST_OBSERVED_PART ? observed / 1e3 : undefined;
}

/** What is shorter than this shows the beat of the agents' windows of 10 s, and not the load. */
const NARROWEST_BUCKET_MILLISECONDS = 60_000;
/** Less of a bucket says too little about the whole of it. */
const SMALLEST_PART_OF_BUCKET = 0.5;

type SparklineSpan = TimeRange & Pick<ServicesAnswer, "end_ms">;

/** The sparkline with as many neighbouring buckets summed as it takes to mean something. */
export function mergedSparkline(values: readonly number[], { from, to, end_ms: end }: SparklineSpan): number[] {
  const bucket = (to - from) / Math.max(1, values.length);
  const merged = Math.max(1, Math.ceil(NARROWEST_BUCKET_MILLISECONDS / Math.max(1, bucket)));
  const delivered = deliveredBuckets(values, bucket, end === undefined || end === null ? 0 : to - end);
  if (merged === 1) return delivered;
  // From the end, so that the newest bucket is a whole one; what is left over at the beginning is scaled to the width of the others.
  const buckets: number[] = [];
  for (let last = delivered.length; last > 0; last -= merged) {
    const members = delivered.slice(Math.max(0, last - merged), last);
    buckets.push((members.reduce((sum, value) => sum + value, 0) * merged) / members.length);
  }
  return buckets.toReversed();
}

/**
 * Without the last moments, which are still on their way: they would show as a fall that never was. What has ended longer ago than
 * that did fall.
 */
function deliveredBuckets(values: readonly number[], bucket: number, missing: number): number[] {
  if (missing <= 0 || missing > Math.max(bucket, NARROWEST_BUCKET_MILLISECONDS)) return [...values];
  const covered = values.length - missing / bucket;
  const whole = Math.floor(covered);
  const part = covered - whole;
  const last = part >= SMALLEST_PART_OF_BUCKET ? [(values[whole] ?? 0) / part] : [];
  return [...values.slice(0, whole), ...last];
}

/** Services whose name contains all the words typed, in the order of their cost. */
export function filterServices(services: readonly ServiceEntry[], text: string): ServiceEntry[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  return services.filter(({ service }) => words.every((word) => service.toLowerCase().includes(word)));
}
