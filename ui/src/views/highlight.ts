// What is searched, pinned and hovered: shared by the flame graph and the table.

import { computed, effect, signal } from "@preact/signals";
import { EnginePerf } from "../engine/perf.ts";
import { NONE, ROOT } from "../model/flame-tree.ts";
import { findPath } from "../model/path-hash.ts";
import { matchedWithin, matchFrames, parseSearch, rowFilter, summarizeMatches, type MatchSummary } from "../model/search.ts";
import { flameTree, viewField } from "./store.ts";

export const perf = new EnginePerf();

const searchText = viewField("search");
export const parsedSearch = computed(() => parseSearch(searchText.value));

const LONGEST_SEARCH_MILLISECONDS = 250;

/** What the search finds; `matched` is undefined when it took too long. */
const search = computed(() => {
  const tree = flameTree.value;
  const parsed = parsedSearch.value;
  if (!tree || !parsed.ok || !parsed.pattern) return undefined;
  const startedAt = performance.now();
  const isTimeUp = (): boolean => performance.now() - startedAt > LONGEST_SEARCH_MILLISECONDS;
  const matched = matchFrames(tree.frames, parsed.pattern, isTimeUp);
  perf.search(performance.now() - startedAt);
  return { matched };
});

/** The frames of the tree with those that the search has found. */
const found = computed(() => {
  const tree = flameTree.value;
  const matched = search.value?.matched;
  return tree && matched && { frames: tree.frames, matched };
});

export const isSearchTooSlow = computed(() => search.value !== undefined && search.value.matched === undefined);

/** What lists are searched by: nothing that the picture could not be searched by. */
export const listPattern = computed(() =>
  parsedSearch.value.ok && !isSearchTooSlow.value ? parsedSearch.value.pattern : undefined,
);

/** Which rows of the table that leaves. */
export const tableFilter = computed(() => {
  const pattern = listPattern.value;
  // What needs no tree is not another filter with each of them.
  return pattern && rowFilter(pattern, pattern.field === "line" ? found.value : undefined);
});

const pinnedName = viewField("pinned");
const pinnedFrames = computed(() => {
  const tree = flameTree.value;
  const name = pinnedName.value;
  if (!tree || name === "") return undefined;
  const matched = new Uint8Array(tree.frames.length);
  for (const frame of tree.frames.framesNamed(name)) matched[frame] = 1;
  return matched;
});

/** A pinned function is the narrower question: it wins over the search until it is let go. */
export const highlightedFrames = computed(() => pinnedFrames.value ?? search.value?.matched);

export const highlight = computed<MatchSummary | undefined>(() => {
  const tree = flameTree.value;
  const matched = highlightedFrames.value;
  return tree && matched && !tree.isEmpty ? summarizeMatches(tree, matched) : undefined;
});

/** The same within what is zoomed to; `undefined` while that is everything. */
export const highlightInView = computed(() => {
  const tree = flameTree.value;
  const matched = highlightedFrames.value;
  const node = zoomedNode.value;
  return tree && matched && node !== ROOT && node < tree.length ? matchedWithin(tree, matched, node) : undefined;
});

/** Node below the pointer or selected with the keyboard; indexes into the tree on the screen. */
export const hoveredNode = signal(NONE);
export const selectedNode = signal(NONE);
const zoomHash = viewField("zoom");
/** Looked up in the tree on the screen, so that no number of another tree can be left over. The root where this tree lacks the path. */
export const zoomedNode = computed(() => {
  const tree = flameTree.value;
  return tree && zoomHash.value !== "" ? Math.max(ROOT, findPath(tree, zoomHash.value)) : ROOT;
});
/** The address asks for a path that the tree on the screen lacks. */
export const isZoomLost = computed(
  () => zoomHash.value !== "" && zoomedNode.value === ROOT && flameTree.value !== undefined && !flameTree.value.isEmpty,
);
export const pointer = signal({ x: 0, y: 0 });
/** Function name hovered in the table. */
export const hoveredFunction = signal("");

/** Node indexes mean nothing in the next tree. */
effect(() => {
  void flameTree.value;
  hoveredNode.value = NONE;
  selectedNode.value = NONE;
});

/** The node the details are about: the pointer's, else the keyboard's, else what fills the view. */
export const describedNode = computed(() => {
  if (hoveredNode.value !== NONE) return hoveredNode.value;
  return selectedNode.value === NONE ? zoomedNode.value : selectedNode.value;
});
