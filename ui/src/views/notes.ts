// Annotations and changes of version in what is looked at, and comparing around them.

import { computed, effect, signal } from "@preact/signals";
import { rangeParameters } from "../api/client.ts";
import type { Parameters } from "../api/requests.ts";
import { aroundTime, markersOf, type Annotation } from "../model/markers.ts";
import { formatSelector, parseSelector, valueOf, withLabel } from "../model/selector.ts";
import { axisRange, type SeriesAnswer } from "../model/series.ts";
import { seriesStep, type TimeRange } from "../model/time-range.ts";
import {
  comparedVersions,
  VERSION_LABELS,
  versionChanges,
  versionLabelOf,
  versionRuns,
  type ComparedVersions,
  type VersionChange,
} from "../model/versions.ts";
import { clock } from "./clock.ts";
import { asApiError, Loader } from "./loader.ts";
import { announce } from "./notice.ts";
import { question, range, requests, selection, series, service, update, view } from "./store.ts";

const annotationsLoader = new Loader<Annotation[]>("the notes");
const changesLoader = new Loader<VersionChange[]>("the versions");
/** Counts what was added and removed here. */
const changesHere = signal(0);

/** Versions change seldom, and asking for them costs a query. */
const VERSIONS_PACE_MILLISECONDS = 60e3;

export const notesError = computed(() => annotationsLoader.state.value.error);

/** None of the range or the service before: a flag has no other mark of what it answers. */
export const markers = computed(() => markersOf(currentOf(annotationsLoader), currentOf(changesLoader)));

function currentOf<T>({ state }: Loader<T[]>): T[] {
  const { data, isStale } = state.value;
  return isStale ? [] : (data ?? []);
}

/** What the chart and the heatmap span. */
export const axis = computed((): TimeRange => {
  const answer = series.value.data;
  return answer ? axisRange(answer, answer) : range.value;
});

/** The list: all markers of the range, or those of a flag by their keys. */
export const openNotes = signal<{ keys?: readonly string[]; time?: number; isAdding?: boolean } | undefined>(undefined);

/** Where the pointer is over the chart. */
export const pointedTime = signal<number | undefined>(undefined);

export function addNote(): void {
  const time = pointedTime.peek();
  openNotes.value = { isAdding: true, ...(time !== undefined && { time }) };
}

/** Asks while something is on the screen that shows them. */
export function followNotes(): () => void {
  const stopAnnotations = effect(() => {
    const { query, range: asked } = selection.value;
    void changesHere.value;
    void annotationsLoader.load(question.peek(), async (abort) => {
      const answer = await requests.json<{ annotations: Annotation[] }>("annotations", [["query", query], ...rangeParameters(asked)], abort);
      return answer.annotations;
    });
  });
  let last = "";
  const stopChanges = effect(() => {
    const { query, type, range: asked } = selection.value;
    const minutes = [asked.from, asked.to].map((time) => Math.floor(time / VERSIONS_PACE_MILLISECONDS));
    const key = JSON.stringify([question.peek(), minutes]);
    if (key === last) return;
    last = key;
    void changesLoader.load(question.peek(), (abort) => findChanges(query, type, asked, abort));
  });
  return () => {
    stopAnnotations();
    stopChanges();
  };
}

/** Between two values of a label that is chosen nothing changes. */
async function findChanges(query: string, type: string, asked: TimeRange, abort: AbortSignal): Promise<VersionChange[]> {
  const found = await findRuns(query, type, asked, abort);
  return found ? versionChanges(found.runs, found.label) : [];
}

async function findRuns(query: string, type: string, asked: TimeRange, abort: AbortSignal) {
  const parameters: Parameters = [["query", query], ...rangeParameters(asked)];
  const { labels } = await requests.json<{ labels: string[] }>("labels", parameters, abort);
  const label = versionLabelOf(labels);
  if (label === undefined || valueOf(query, label) !== undefined) return undefined;
  const answer = await requests.json<SeriesAnswer>(
    "series",
    [...parameters, ["type", type], ["step", String(seriesStep(asked))], ["group_by", "service_name"], ["group_by", label]],
    abort,
  );
  return { label, runs: versionRuns(answer, label) };
}

// === what is added and removed ===

export interface NewNote {
  text: string;
  kind: string;
  time: string;
  end?: string;
  labels: Record<string, string>;
}

/** What the server has against it; `undefined` when it is kept. */
export async function keepNote(note: NewNote): Promise<string | undefined> {
  try {
    await requests.change("POST", "annotations", [], note);
  } catch (error) {
    return refusal(error);
  }
  changesHere.value++;
  announce("The note is kept");
  return undefined;
}

export async function removeNote({ id }: Annotation): Promise<void> {
  try {
    await requests.change("DELETE", "annotations", [["id", id]]);
    announce("The note is gone");
  } catch (error) {
    announce(refusal(error));
  }
  changesHere.value++;
}

export function refusal(failure: unknown): string {
  const { message, hint } = asApiError(failure);
  return hint === "" ? message : `${message}: ${hint}`;
}

// === comparing ===

const text = (time: number): string => String(Math.round(time));

export function compareAround(time: number): void {
  const { base, after } = aroundTime(time, range.peek(), Date.now());
  update({
    screen: "compare",
    from: text(after.from),
    to: text(after.to),
    baseQuery: "",
    baseFrom: text(base.from),
    baseTo: text(base.to),
    zoom: "",
    path: "",
  });
}

const DAY = 86_400e3;
/** How far back a version before is looked for, beside the range itself. */
const LOOKBACKS = [DAY, 7 * DAY, 14 * DAY];

/** The version that runs, and the one before it, each where it ran: `version` names another than the latest. */
export async function comparePreviousVersion(chosen?: { service: string; version: string }): Promise<void> {
  const name = chosen?.service || service.peek();
  if (name === undefined) return announce("Choose a service first: each has its own versions");
  const { query, type } = view.peek();
  const ofService = withLabel(query, "service_name", name);
  const open = VERSION_LABELS.reduce<string | undefined>((rest, label) => (rest === undefined ? rest : withLabel(rest, label, undefined)), ofService);
  if (open === undefined) return announce("Mend the selector first: what it says would be lost");
  const named = VERSION_LABELS.map((label) => valueOf(query, label)).find((value) => value !== undefined);
  const wanted = chosen?.version ?? named;
  const { from, to } = range.peek();
  const ranges = [{ from, to }, ...LOOKBACKS.filter((back) => back > to - from).map((back) => ({ from: to - back, to }))];
  const found = await findCompared(ranges, open, type, name, wanted).catch((error: unknown) => {
    announce(refusal(error));
    return "failed" as const;
  });
  if (found === "failed") return;
  if (!found)
    return announce(`No earlier version of ${name} in 14 days: versions are told by the label ${VERSION_LABELS.slice(0, 2).join(" or ")}`);
  const { label, current, previous } = found;
  const of = (one: string): string => withLabel(open, label, one) ?? open;
  update({
    screen: "compare",
    query: of(current.version),
    from: text(current.from),
    to: text(current.to),
    baseQuery: of(previous.version),
    baseFrom: text(previous.from),
    baseTo: text(previous.to),
    zoom: "",
    path: "",
  });
  announce(`${previous.version} until ${clock(previous.to)}, ${current.version} from ${clock(current.from)}`);
}

/** In the first of the ranges that has two versions: the shorter ones cost less, and come first. */
async function findCompared(
  [asked, ...longer]: readonly TimeRange[],
  query: string,
  type: string,
  name: string,
  version: string | undefined,
): Promise<(ComparedVersions & { label: string }) | undefined> {
  if (!asked) return undefined;
  const found = await findRuns(query, type, asked, new AbortController().signal);
  const both = comparedVersions(found?.runs.get(name) ?? [], version);
  if (found && both) return { label: found.label, ...both };
  return findCompared(longer, query, type, name, version);
}

/** Labels that a new note is about: those that the selector names. */
export function noteLabels(): Record<string, string> {
  const matchers = parseSelector(view.peek().query) ?? [];
  return Object.fromEntries(matchers.filter(({ operator, value }) => operator === "=" && value !== "").map(({ label, value }) => [label, value]));
}

export function labelsText(labels: Record<string, string>): string {
  return formatSelector(Object.entries(labels).map(([label, value]) => ({ label, operator: "=" as const, value })));
}
