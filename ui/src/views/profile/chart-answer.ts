// The chart of what is looked at, asked while the pane is open, and which of its lanes are shown.

import { computed, effect, signal } from "@preact/signals";
import { selectionParameters } from "../../api/client.ts";
import { decodeChart, MERGED_TITLE, type Chart, type Lane } from "../../model/chart.ts";
import { filterLanes, firstTellingDepth, placeLanes, type LaneWindow, type PlacedLane } from "../../model/lane-rows.ts";
import { matchFrames } from "../../model/search.ts";
import { parsedSearch } from "../highlight.ts";
import { Loader } from "../loader.ts";
import { question, requests, selection, viewField } from "../store.ts";

const laneLabel = viewField("laneBy");
const laneText = viewField("lanes");
const pinned = viewField("pinned");
const loader = new Loader<Chart>("the chart");
export const chart = loader.state;

/** Loads while the pane is looked at; the function that it returns ends that. */
export function followChart(): () => void {
  return effect(() => {
    const asked = selection.value;
    const laneBy = laneLabel.value;
    const lanes = laneBy === "" ? [] : [["lane_by", laneBy] as const];
    void loader.load(JSON.stringify([question.peek(), laneBy]), async (abort) => {
      const parameters = [...selectionParameters(asked), ...lanes, ["format", "columns"] as const];
      const response = await requests.get("chart", parameters, abort);
      return decodeChart(await response.arrayBuffer());
    });
  });
}

export const shownChart = computed(() => chart.value.data);

/** Also of what a limit leaves out. */
export const allLanesTotal = computed(() => (shownChart.value?.header.lanes ?? []).reduce((sum, { total }) => sum + total, 0));

/** Of one lane all rows are shown; of several so few that a screen has them all, or nearly. */
const ROWS_OF_A_SCREEN = 18;
const [LEAST_ROWS, MOST_ROWS] = [2, 8];

/** Folded or unfolded by hand, by the titles of the lanes: they outlive a refresh. */
const folded = signal<ReadonlySet<string>>(new Set());
export const isDeep = signal(false);

export const shownLanes = computed(() => filterLanes(shownChart.value?.lanes ?? [], laneText.value));

const laneWindow = computed((): LaneWindow => {
  const tree = shownChart.value?.tree;
  const count = shownLanes.value.length;
  if (!tree || isDeep.value || count <= 1) return { first: 0, most: Number.POSITIVE_INFINITY };
  const most = Math.max(LEAST_ROWS, Math.min(MOST_ROWS, Math.floor(ROWS_OF_A_SCREEN / count)));
  return { first: firstTellingDepth(tree), most };
});

export const placedLanes = computed((): PlacedLane[] => {
  const names = folded.value;
  return placeLanes(shownLanes.value, ({ title }) => !names.has(title), laneWindow.value);
});

export function toggleLane({ title }: Lane): void {
  const names = new Set(folded.peek());
  if (!names.delete(title)) names.add(title);
  folded.value = names;
}

export function foldAll(isFolded: boolean): void {
  folded.value = new Set(isFolded ? shownLanes.peek().map(({ title }) => title) : []);
}

/** How many lanes there are, the one of all together left out. */
export function laneCount(lanes: readonly Lane[]): number {
  return lanes.filter(({ title }) => title !== MERGED_TITLE).length;
}

/** One flag a frame of the chart: what is pinned, else what is searched. */
export const chartMatches = computed((): Uint8Array | undefined => {
  const tree = shownChart.value?.tree;
  if (!tree) return undefined;
  const name = pinned.value;
  if (name !== "") {
    const matched = new Uint8Array(tree.frames.length);
    for (const frame of tree.frames.framesNamed(name)) matched[frame] = 1;
    return matched;
  }
  const parsed = parsedSearch.value;
  return parsed.ok && parsed.pattern ? matchFrames(tree.frames, parsed.pattern, () => false) : undefined;
});
