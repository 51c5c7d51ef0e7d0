// The comparison on the screen: how it is looked at, and what stands in its table.

import { computed, signal } from "@preact/signals";
import type { TopAnswer } from "../../api/types.ts";
import { scaledFunctions, topOfCompared, type ComparedFunction } from "../../model/compared-functions.ts";
import { comparedTree, type ComparedTree, type Comparison, type Look } from "../../model/comparison.ts";
import type { DiffAnswer } from "../../model/diff-answer.ts";
import type { FlameTree } from "../../model/flame-tree.ts";
import { flameTree, refresh, top, update, view } from "../store.ts";

/** As chosen, but for the widths, which are in the address; before that, as who made the comparison says. */
const chosenLook = signal<Partial<Look>>({});

/** What the answer of a server says beside the tree. */
type Sides = Pick<DiffAnswer, "before" | "after" | "unit" | "type" | "statistics">;

// Found by the answer on the screen, so that no number of another one can be left over: not after a refusal, nor when it is given up.
const trees = new WeakMap<FlameTree, ComparedTree>();
const sidesOf = new WeakMap<FlameTree, Sides>();
const functionsOf = new WeakMap<TopAnswer, readonly ComparedFunction[]>();
const NONE: readonly ComparedFunction[] = [];

export const compared = computed(() => flameTree.value && trees.get(flameTree.value));

/** Both sides of what is on the screen; nothing in a file of its own. */
export const sides = computed(() => flameTree.value && sidesOf.get(flameTree.value));

/** What a server knows of chance. */
export const statistics = computed(() => sides.value?.statistics);

const measuredFunctions = computed(() => (top.value.data && functionsOf.get(top.value.data)) ?? NONE);

const scale = computed(() => compared.value?.scale ?? 1);
export const comparedFunctions = computed(() => scaledFunctions(measuredFunctions.value, scale.value));

/** Whether there is something to confirm, and no way to. */
export const tooFewToConfirm = computed(() =>
  measuredFunctions.value.some(({ change, total_change: total }) => change?.confirmation === "too_few" || total?.confirmation === "too_few"),
);

export function lookAt({ widths, ...look }: Partial<Look>): void {
  if (widths) update({ widths });
  chosenLook.value = { ...chosenLook.peek(), ...look };
  refresh();
}

/** The tree of a comparison as it is looked at, to be put on the screen. `scale_` multiplies what was before. */
export function shownTree(comparison: Comparison, scale_: number | undefined, answer?: Sides): FlameTree {
  const { widths } = view.peek();
  const look = { ...comparison.firstLook, ...chosenLook.peek(), ...(widths !== "" && { widths }) };
  const shown = comparedTree(comparison, look, scale_);
  trees.set(shown.tree, shown);
  if (answer) {
    // The rest of the answer is its tree once more.
    const { before, after, unit, type, statistics: chance } = answer;
    sidesOf.set(shown.tree, { before, after, unit, type, ...(chance && { statistics: chance }) });
  }
  return shown.tree;
}

/** The table of a comparison, to be put on the screen. */
export function shownTop(answer: Omit<TopAnswer, "functions">, functions: readonly ComparedFunction[]): TopAnswer {
  const shown: TopAnswer = { ...answer, functions: topOfCompared(functions) };
  functionsOf.set(shown, functions);
  return shown;
}
