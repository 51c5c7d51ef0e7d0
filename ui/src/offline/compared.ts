// The comparison on the screen: how it is looked at, and the answers made from it.

import { computed, signal } from "@preact/signals";
import type { Selection } from "../api/client.ts";
import type { TopAnswer } from "../api/types.ts";
import { scaledFunctions, type ComparedFunction } from "../model/compared-functions.ts";
import { comparedTree, type ComparedTree, type Comparison, type Look } from "../model/comparison.ts";
import type { FlameTree } from "../model/flame-tree.ts";
import { flameTree, refresh } from "../views/store.ts";
import { OfflineApi } from "./offline-api.ts";
import { comparedAnswerOf, comparisonOf } from "./profiles.ts";

/** As chosen; before that, as the file says. */
const chosenLook = signal<Partial<Look>>({});
const trees = new WeakMap<FlameTree, ComparedTree>();
const measuredFunctions = signal<readonly ComparedFunction[]>([]);

/** Found by the tree on the screen, so that no number of another tree can be left over. */
export const compared = computed(() => flameTree.value && trees.get(flameTree.value));

const scale = computed(() => compared.value?.scale ?? 1);
export const comparedFunctions = computed(() => scaledFunctions(measuredFunctions.value, scale.value));

export function lookAt(look: Partial<Look>): void {
  chosenLook.value = { ...chosenLook.peek(), ...look };
  refresh();
}

export class ComparisonApi extends OfflineApi {
  #comparison: Comparison | undefined;

  override async flameGraph(selection: Selection): Promise<FlameTree> {
    const comparison = (this.#comparison ??= await comparisonOf(this.profile(selection)));
    const shown = comparedTree(comparison, { ...comparison.firstLook, ...chosenLook.peek() });
    trees.set(shown.tree, shown);
    return shown.tree;
  }

  override async top(selection: Selection): Promise<TopAnswer> {
    const answer = await comparedAnswerOf(this.profile(selection));
    measuredFunctions.value = answer.functions;
    const functions = answer.functions.map(({ name, file, mapping, kind, after: { self, total } }) => ({
      name,
      file,
      mapping,
      kind,
      self,
      total,
    }));
    return { ...answer, functions };
  }
}
