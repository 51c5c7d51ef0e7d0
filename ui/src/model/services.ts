// What the services list says about each service, worked out from `/api/v1/services`.

import type { TimeRange } from "./time-range.ts";

/** One entry of `/api/v1/services`. Values are in the answer's unit. */
export interface ServiceEntry {
  service: string;
  total: number;
  previous_total: number;
  types: string[];
  sparkline: number[];
}

export interface ServicesAnswer {
  type: string;
  unit: string;
  from: number;
  to: number;
  services: ServiceEntry[];
  hint?: string;
}

export function sumOfTotals(services: readonly ServiceEntry[]): number {
  return services.reduce((sum, { total }) => sum + total, 0);
}

/**
 * The seconds of the range in which anything was recorded. An agent that started ten minutes ago has not been idle for the
 * fifty before: averaging over the whole hour would show a sixth of the true load.
 *
 * The sparklines say it to a bucket; `firstPoint`, the start of a finer series (unix milliseconds), says it better where it lies in
 * that bucket. A service that began long after the others was idle before, and its late first point is not taken.
 */
export function coveredSeconds(services: readonly ServiceEntry[], range: TimeRange, firstPoint?: number): number {
  const length = Math.max(1, range.to - range.from);
  const buckets = Math.max(0, ...services.map(({ sparkline }) => sparkline.length));
  const first = Math.min(...services.map(({ sparkline }) => firstUsed(sparkline)));
  if (buckets === 0 || !Number.isFinite(first)) return length / 1e3;
  const bucketStart = range.from + (length * first) / buckets;
  const bucketEnd = bucketStart + length / buckets;
  const isFiner = firstPoint !== undefined && firstPoint > bucketStart && firstPoint < bucketEnd;
  return Math.max(1, (range.to - (isFiner ? firstPoint : bucketStart)) / 1e3);
}

function firstUsed(sparkline: readonly number[]): number {
  const first = sparkline.findIndex((value) => value > 0);
  return first === -1 ? Number.POSITIVE_INFINITY : first;
}

/** A change is worth showing only where the previous period was observed at all. */
export function hasPreviousPeriod(services: readonly ServiceEntry[]): boolean {
  return services.some(({ previous_total: previous }) => previous > 0);
}

/** Services whose name contains all the words typed, in the order of their cost. */
export function filterServices(services: readonly ServiceEntry[], text: string): ServiceEntry[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  return services.filter(({ service }) => words.every((word) => service.toLowerCase().includes(word)));
}
