// What everything costs, without filters and without a path: the second denominator of each share.

import { computed, effect } from "@preact/signals";
import { selectionParameters, type Selection } from "../api/client.ts";
import { Loader } from "./loader.ts";
import { flame, pictureSource, requests, selection, view } from "./store.ts";

const loader = new Loader<number>("the whole");

const isNarrowed = computed(() => {
  const { filters, path } = selection.value;
  return pictureSource.value === undefined && (path.length > 0 || filters.some(({ isOff }) => !isOff));
});

/** Of the tree, unless it answers what was asked before. */
const treeTotal = computed(() => (flame.value.isStale ? undefined : flame.value.data?.rootTotal));

/** In the unit of the tree; `undefined` while it is on its way, or is that of another range. */
export const wholeTotal = computed(() => {
  if (!isNarrowed.value) return treeTotal.value;
  const { data, isStale } = loader.state.value;
  return isStale ? undefined : data;
});

/** Only while something is left out: else the tree says it. */
export const shownTotal = computed(() => (isNarrowed.value ? treeTotal.value : undefined));

export function followWhole(): () => void {
  return effect(() => {
    const asked = selection.value;
    if (!isNarrowed.value) return;
    // As they are written: a live range stays the same question.
    const { query, type, from, to, file } = view.peek();
    void loader.load(JSON.stringify([query, type, from, to, file]), (signal) => totalOf(asked, signal));
  });
}

async function totalOf(asked: Selection, signal: AbortSignal): Promise<number> {
  const everything = selectionParameters({ ...asked, filters: [], path: [] });
  const answer = await requests.json<{ total: number }>(
    "flamegraph",
    [...everything, ["format", "json"], ["max_nodes", "1"]],
    signal,
  );
  return answer.total;
}
