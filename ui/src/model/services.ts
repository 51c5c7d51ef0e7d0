// What the services list says about each service, worked out from `/api/v1/services`.

import type { PartialHead } from "./columns.ts";
import { paceBetween, profiledSeconds, type Pace, type ProfiledTime } from "./cost.ts";
import type { TimeRange } from "./time-range.ts";

/** One entry of `/api/v1/services`. Values are in the answer's unit. */
export interface ServiceEntry {
  service: string;
  total: number;
  previous_total: number;
  types: string[];
  sparkline: number[];
  /** How long its profiles took, what several cover counted once; null where none says so. The same of the range before. */
  profiled_ms?: number | null | undefined;
  previous_profiled_ms?: number | null | undefined;
}

export interface ServicesAnswer extends PartialHead, ProfiledTime {
  type: string;
  unit: string;
  from: number;
  to: number;
  services: ServiceEntry[];
  /** The earliest profile of any service in the range, and in the range of the same length before it; null without one. */
  first_ms?: number | null;
  previous_first_ms?: number | null;
  previous_profiled_ms?: number | null | undefined;
  /** The end of the latest profile of any service in the range; null without one. */
  end_ms?: number | null;
  hint?: string;
}

export function sumOfTotals(services: readonly ServiceEntry[]): number {
  return services.reduce((sum, { total }) => sum + total, 0);
}

/** Of the range before, at least this part must have been observed to be compared with. */
const SMALLEST_OBSERVED_PART = 0.95;

/** Whether the range before was observed for long enough to be compared with. */
export function isComparable({ from, to, previous_first_ms: first }: ServicesAnswer): boolean {
  if (first === undefined || first === null) return false;
  return from - first >= (to - from) * SMALLEST_OBSERVED_PART;
}

type Totals = Pick<ServiceEntry, "total" | "previous_total" | "profiled_ms" | "previous_profiled_ms">;

/** `undefined` where the range before says too little. */
export function paces(answer: ServicesAnswer, totals: Totals): Pace | undefined {
  if (!isComparable(answer)) return undefined;
  const now = { total: totals.total, seconds: profiledSeconds(totals) };
  const before = {
    total: totals.previous_total,
    seconds: profiledSeconds({ profiled_ms: totals.previous_profiled_ms }),
  };
  return paceBetween(answer.type, now, before);
}

/** All services as one. */
export function totalsOfAll(answer: ServicesAnswer): Totals {
  const previous = answer.services.reduce((sum, entry) => sum + entry.previous_total, 0);
  const { profiled_ms, previous_profiled_ms } = answer;
  return { total: sumOfTotals(answer.services), previous_total: previous, profiled_ms, previous_profiled_ms };
}

/** What is shorter than this shows the beat of the agents' windows of 10 s, and not the load. */
const NARROWEST_BUCKET_MILLISECONDS = 60_000;

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

/** Without the last moments, which are still on their way: they would show as a fall that never was. What ended longer ago did fall. */
function deliveredBuckets(values: readonly number[], bucket: number, missing: number): number[] {
  if (missing <= 0 || missing > Math.max(bucket, NARROWEST_BUCKET_MILLISECONDS)) return [...values];
  return values.slice(0, Math.round(values.length - missing / bucket));
}

/** Services whose name contains all the words typed, in the order of their cost. */
export function filterServices(services: readonly ServiceEntry[], text: string): ServiceEntry[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  return services.filter(({ service }) => words.every((word) => service.toLowerCase().includes(word)));
}
