// What threads wait for, at every node of the picture. The server adds up one selection at a time, so each reason is asked for by its
// label, with the same range and filters, and the answers are joined by their paths: exact sums, no estimate, and there are nine
// reasons at most. A grouping in the answer itself would save requests, and need another form of tree.

import { computed, effect } from "@preact/signals";
import { rangeParameters, type Selection } from "../../api/client.ts";
import { filterParameters, type FilterKind } from "../../model/filters.ts";
import { costParts, type Part } from "../../model/cost-parts.ts";
import { RequestPool } from "../../model/request-pool.ts";
import { parseTypeId } from "../../model/profile-type.ts";
import { CPU_TYPE, isWallTime, ON_CPU, REASON_LABEL, reasonPattern } from "../../model/wait-reasons.ts";
import { coloring } from "../coloring.ts";
import { Loader } from "../loader.ts";
import { api, flame, flameTree, question, requests, selection } from "../store.ts";

/** A label with more values than this holds something else than reasons. */
const MOST_REASONS = 12;
/** Lists of labels know no others. */
const ABOUT_LABELS: ReadonlySet<FilterKind> = new Set(["tagfocus", "tagignore"]);
/** At the same time: the picture of the next refresh must not wait for these. */
const pool = new RequestPool(3);

const loader = new Loader<readonly Part[]>("the reasons");
export const reasons = loader.state;

const isByReason = computed(() => coloring.value === "reason");

/** Joined with the tree on the screen, so that a refresh keeps its colours until the new parts are there. */
export const reasonParts = computed(() => {
  const tree = flameTree.value;
  const { data, isStale } = loader.state.value;
  return tree && data && !isStale && isByReason.value && !tree.isEmpty ? costParts(tree, data) : undefined;
});

/** The answer to what is asked now; the same while the next is only on its way. */
const answered = computed(() => (flame.value.isStale ? undefined : flame.value.data));

/** Asks with each new tree while the picture is coloured by reason; the function that it returns ends that. */
export function followReasons(): () => void {
  return effect(() => {
    const tree = answered.value;
    if (!isByReason.value || !tree || tree.isEmpty) return;
    const { type, from, to } = tree.header;
    const asked: Selection = { ...selection.peek(), type, range: { from, to } };
    void loader.load(JSON.stringify([question.peek(), type]), (signal) => partsOf(asked, signal));
  });
}

async function partsOf(asked: Selection, signal: AbortSignal): Promise<readonly Part[]> {
  const named = await reasonsOf(asked, signal);
  const one = async (name: string, selected: Selection): Promise<Part> => ({
    name,
    tree: await pool.run(signal, () => api.flameGraph(selected, undefined, signal)),
  });
  const waits = named.map((reason) => one(reason, narrowed(asked, reasonPattern(reason))));
  const runs = isWallTime(parseTypeId(asked.type)) ? [one(ON_CPU, { ...asked, type: CPU_TYPE })] : [];
  const parts = await Promise.all([...runs, ...waits]);
  return parts.filter(({ tree }) => !tree.isEmpty);
}

async function reasonsOf({ query, range, filters }: Selection, signal: AbortSignal): Promise<string[]> {
  const answer = await requests.json<{ values: string[] }>(
    "label-values",
    [
      ["label", REASON_LABEL],
      ["query", query],
      ...rangeParameters(range),
      ...filterParameters(filters.filter(({ kind }) => ABOUT_LABELS.has(kind))),
    ],
    signal,
  );
  return answer.values.slice(0, MOST_REASONS);
}

function narrowed(asked: Selection, pattern: string): Selection {
  return { ...asked, filters: [...asked.filters, { kind: "tagfocus", pattern, isOff: false }] };
}
