// Tree and table of a comparison, asked of the server at once: both are of one answer.

import { ApiError, selectionParameters, type Selection } from "../../api/client.ts";
import type { Parameters } from "../../api/requests.ts";
import type { TopAnswer } from "../../api/types.ts";
import { momentText } from "../../model/time-range.ts";
import { comparisonOfDiff, scaleOf, type DiffAnswer } from "../../model/diff-answer.ts";
import type { FlameTree } from "../../model/flame-tree.ts";
import { requests, shownBase, view, type PictureSource } from "../store.ts";
import { shownTop, shownTree } from "./compared.ts";

const MOST_FUNCTIONS = 10_000;
const BAD_REQUEST = 400;

/** One request for tree and table: who comes second waits for the answer of the first, whose `owner` ends it. */
let underWay: { key: string; owner: AbortSignal; answer: Promise<DiffAnswer> } | undefined;

export const diffSource: PictureSource = {
  question: () => {
    const { baseQuery, baseFrom, baseTo, baseFile, normalization, fdr } = view.value;
    return JSON.stringify([baseQuery, baseFrom, baseTo, baseFile, normalization, fdr]);
  },

  async flameGraph(asked: Selection, maximumNodes: number | undefined, signal_: AbortSignal): Promise<FlameTree> {
    const answer = await ask(asked, maximumNodes, signal_);
    const comparison = comparisonOfDiff(answer);
    return shownTree(comparison, scaleOf(answer, comparison, view.peek().normalization), answer);
  },

  async top(asked: Selection, _: "self" | "total", signal_: AbortSignal): Promise<TopAnswer> {
    const { type, unit, after, truncated, functions } = await ask(asked, undefined, signal_);
    return shownTop({ type, unit, total: after.total, ...(truncated && { truncated }) }, functions);
  },
};

/** Of `/api/v1/diff`; nothing where the range that is compared with is none. */
export function comparisonParameters(asked: Selection): Parameters | undefined {
  const { baseQuery, baseFrom, baseFile, file, normalization, fdr } = view.peek();
  // Of files all of their time is meant: there is no time before.
  const isWholeFile = file !== "" && (baseFile !== "" || baseFrom === "");
  const base = shownBase.peek();
  if (base === undefined) return undefined;
  return [
    ...selectionParameters(asked),
    ["base_query", baseQuery === "" ? asked.query : baseQuery],
    ...(isWholeFile ? [] : [["base_from", momentText(base.from)] as const, ["base_to", momentText(base.to)] as const]),
    ["normalization", normalization],
    ["fdr", fdr],
  ];
}

function ask(asked: Selection, maximumNodes: number | undefined, signal_: AbortSignal): Promise<DiffAnswer> {
  const { baseFile, file } = view.peek();
  const selected = comparisonParameters(asked);
  if (selected === undefined) {
    const hint = "Use now-2h, 2026-11-21T10:00:00Z, or unix seconds, and let it begin before it ends.";
    return Promise.reject(new ApiError("bad_time", "the range that is compared with is none", hint, BAD_REQUEST));
  }
  const parameters: Parameters = [
    ...selected,
    ["limit", String(MOST_FUNCTIONS)],
    ...(maximumNodes === undefined ? [] : [["max_nodes", String(maximumNodes)] as const]),
  ];
  // Of the parameters and not of the moment: both loaders ask in one refresh, with one range.
  const key = JSON.stringify([file, baseFile, ...parameters.filter(([name]) => name !== "max_nodes")]);
  // What was given up is still there until it has failed.
  if (underWay?.key === key && !underWay.owner.aborted) return underWay.answer;
  const answer = requests.json<DiffAnswer>("diff", parameters, signal_);
  underWay = { key, owner: signal_, answer };
  const forget = (): void => {
    if (underWay?.answer === answer) underWay = undefined;
  };
  answer.then(forget, forget);
  return answer;
}
