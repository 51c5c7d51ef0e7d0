// What is drawn over a time axis: annotations, and deploys that the series themselves tell of.

import type { TimeRange } from "./time-range.ts";
import type { VersionChange } from "./versions.ts";

/** As `/api/v1/annotations` has it; times are unix milliseconds. */
export interface Annotation {
  id: string;
  time: number;
  end: number | null;
  kind: string;
  text: string;
  labels: Record<string, string>;
  author: string;
  created: number;
}

export interface Marker {
  /** One on the page. */
  key: string;
  time: number;
  end: number | undefined;
  kind: string;
  text: string;
  /** Written by somebody; without it the series tell it. */
  annotation?: Annotation;
  /** What of a version it is, where that is known. */
  change?: VersionChange;
}

/** Markers that would stand on one another, as one flag. */
export interface MarkerGroup {
  /** Of its first marker. */
  time: number;
  /** Its place on the axis, 0 to 1. */
  place: number;
  markers: Marker[];
}

/** A deploy that was announced is seen some minutes later in the data, or earlier, by the clock of who announced it. */
const SAME_DEPLOY_MILLISECONDS = 30 * 60e3;

/** By time. A change of version that was also annotated is one marker. */
export function markersOf(annotations: readonly Annotation[], changes: readonly VersionChange[]): Marker[] {
  const open = [...changes];
  const written = annotations.map((annotation): Marker => {
    const at = annotation.kind === "deploy" ? open.findIndex((change) => isSameDeploy(annotation, change)) : -1;
    const [change] = at === -1 ? [] : open.splice(at, 1);
    const { id, time, end, kind, text } = annotation;
    return { key: id, time, end: end ?? undefined, kind, text, annotation, ...(change && { change }) };
  });
  const derived = open.map((change): Marker => {
    const { service, version, previous, time } = change;
    const name = service === "" ? "" : `${service} `;
    return { key: `${service} ${version} ${time}`, time, end: undefined, kind: "deploy", text: `${name}${previous} → ${version}`, change };
  });
  return [...written, ...derived].toSorted((left, right) => left.time - right.time);
}

function isSameDeploy({ time, labels }: Annotation, { service, label, version, time: seen }: VersionChange): boolean {
  const isSame = (name: string, value: string): boolean => labels[name] === undefined || labels[name] === value;
  const isNear = Math.abs(time - seen) <= SAME_DEPLOY_MILLISECONDS;
  return isNear && isSame("service_name", service) && isSame(label, version);
}

/** Those in the range; what is nearer than `gap` of it to the first of a group belongs to the group. */
export function groupMarkers(markers: readonly Marker[], { from, to }: TimeRange, gap: number): MarkerGroup[] {
  const groups: MarkerGroup[] = [];
  if (!(to > from)) return groups;
  for (const marker of markers) {
    // What began before the range and is still going on stands at its beginning.
    const time = Math.max(from, marker.time);
    if (time >= to || (marker.end ?? marker.time) < from) continue;
    const place = (time - from) / (to - from);
    const last = groups[groups.length - 1];
    if (last && place - last.place < gap) last.markers.push(marker);
    else groups.push({ time: marker.time, place, markers: [marker] });
  }
  return groups;
}

/** Shorter than this there is hardly a profile. */
const SHORTEST_SIDE = 60e3;
const USUAL_SIDE = 30 * 60e3;

/** Equal times before and after a moment, as long as the range has on both sides of it. */
export function aroundTime(time: number, shown: TimeRange, now: number): { base: TimeRange; after: TimeRange } {
  const inRange = Math.min(time - shown.from, shown.to - time);
  const wanted = inRange >= SHORTEST_SIDE ? inRange : USUAL_SIDE;
  const length = Math.max(SHORTEST_SIDE, Math.min(wanted, now - time));
  return { base: { from: time - length, to: time }, after: { from: time, to: time + length } };
}
