// Ranges chosen in a picture, for everything on the page, and the way back from them.

import { computed } from "@preact/signals";
import { DragHistory, type RangeEnds } from "../model/drag-range.ts";
import { update, view } from "./store.ts";

const dragHistory = new DragHistory();

export const canTakeRangeBack = computed(() => dragHistory.canGoBack(view.value));

export function chooseRange(chosen: RangeEnds): void {
  dragHistory.choose(view.peek(), chosen);
  update(chosen);
}

/** The range before the first of several that were chosen one after another. */
export function takeRangeBack(): void {
  const before = dragHistory.back(view.peek());
  if (before) update(before);
}
