// Which version of a service ran when, seen in the series themselves: a deploy shows without anybody having told of it.

import type { SeriesAnswer } from "./series.ts";
import type { TimeRange } from "./time-range.ts";

/** Labels that tell versions apart, the usual one first. */
export const VERSION_LABELS = ["version", "service_version", "service.version", "git_ref"] as const;

/** A version while it had the most of its service. */
export interface VersionRun extends TimeRange {
  version: string;
}

export interface VersionChange {
  service: string;
  label: string;
  version: string;
  previous: string;
  /** Since when, unix milliseconds. */
  time: number;
}

export function versionLabelOf(labels: readonly string[]): string | undefined {
  return VERSION_LABELS.find((label) => labels.includes(label));
}

/** By service, in their order. Series without the label are of no version. */
export function versionRuns({ series, step_ms: step }: SeriesAnswer, label: string): Map<string, VersionRun[]> {
  const heaviest = new Map<string, Map<number, { version: string; value: number }>>();
  for (const { labels, points } of series) {
    const version = labels[label] ?? "";
    if (version === "") continue;
    const service = labels.service_name ?? "";
    const times = heaviest.get(service) ?? new Map<number, { version: string; value: number }>();
    heaviest.set(service, times);
    for (const [time, value] of points) {
      if (value > 0 && value > (times.get(time)?.value ?? 0)) times.set(time, { version, value });
    }
  }
  return new Map([...heaviest].map(([service, times]) => [service, runsOf(times, step)]));
}

function runsOf(times: ReadonlyMap<number, { version: string }>, step: number): VersionRun[] {
  const steps = [...times].toSorted(([left], [right]) => left - right);
  const runs = steps.map(([time, { version }]): VersionRun => ({ version, from: time, to: time + step }));
  // While a new version is rolled out both have about half, and chance says which has more: one step alone is no deploy.
  return joined(joined(runs).filter((run, place, all) => place === 0 || place === all.length - 1 || run.to - run.from > step));
}

function joined(runs: readonly VersionRun[]): VersionRun[] {
  const result: VersionRun[] = [];
  for (const run of runs) {
    const last = result[result.length - 1];
    if (last?.version === run.version) last.to = run.to;
    else result.push({ ...run });
  }
  return result;
}

export function versionChanges(runs: ReadonlyMap<string, readonly VersionRun[]>, label: string): VersionChange[] {
  const changes = [...runs].flatMap(([service, all]) =>
    all.slice(1).map(({ version, from }, place): VersionChange => ({ service, label, version, previous: all[place].version, time: from })),
  );
  return changes.toSorted((left, right) => left.time - right.time);
}

export interface ComparedVersions {
  current: VersionRun;
  previous: VersionRun;
}

/** Around a deploy the load is about the same; longer than this it is another time of day. */
const LONGEST_COMPARED = 6 * 3600e3;

/** Equal times on both sides of the change to `version`, or of the last one: where each of both ran. */
export function comparedVersions(runs: readonly VersionRun[], version?: string): ComparedVersions | undefined {
  const at = runs.findLastIndex((run, place) => place > 0 && (version === undefined || run.version === version));
  if (at < 1) return undefined;
  const [previous, current] = [runs[at - 1], runs[at]];
  const length = Math.min(current.to - current.from, previous.to - previous.from, LONGEST_COMPARED);
  return {
    current: { version: current.version, from: current.from, to: current.from + length },
    previous: { version: previous.version, from: previous.to - length, to: previous.to },
  };
}
