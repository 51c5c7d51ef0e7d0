// Who calls a function and what it calls, asked of the server: exact, whatever the flame graph folds.

import { effect } from "@preact/signals";
import { selectionParameters } from "../../api/client.ts";
import { exactPattern } from "../../model/filters.ts";
import { callersTrees, type CallersAnswer, type CallersTrees } from "../../model/nested-tree.ts";
import { Loader } from "../loader.ts";
import { question, requests, selection, viewField } from "../store.ts";

/** Of each side; the rest is folded. */
const MOST_NODES = 20_000;

export interface Sandwich extends CallersTrees {
  name: string;
}

const pinned = viewField("pinned");
const loader = new Loader<Sandwich>("callers and callees");
export const sandwich = loader.state;

/** Loads while the pane is looked at; the function that it returns ends that. */
export function followSandwich(): () => void {
  return effect(() => {
    const name = pinned.value;
    const asked = selection.value;
    if (name === "") return;
    void loader.load(JSON.stringify([question.peek(), name]), async (signal) => {
      const answer = await requests.json<CallersAnswer>(
        "callers",
        [["function", exactPattern("fn", name)], ...selectionParameters(asked), ["max_nodes", String(MOST_NODES)]],
        signal,
      );
      return { name, ...callersTrees(answer, name) };
    });
  });
}
