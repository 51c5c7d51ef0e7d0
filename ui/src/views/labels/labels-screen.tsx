// Every value of one label side by side: what it costs, how that went, and what it looks like.

import { useEffect, useRef, useState } from "preact/hooks";
import { rangeParameters, wholeParameters } from "../../api/client.ts";
import { ApiError } from "../../api/requests.ts";
import { labelCards, orderedCards, withValue, type CardOrder } from "../../model/label-grid.ts";
import { RequestPool } from "../../model/request-pool.ts";
import type { SeriesAnswer } from "../../model/series.ts";
import { isComparable } from "../../model/services.ts";
import { seriesStep } from "../../model/time-range.ts";
import "../../styles/screens.css";
import { Notices } from "../empty-state.tsx";
import { useLabelNames } from "../group-chooser.tsx";
import { NothingHere } from "../nothing-here.tsx";
import { announce } from "../notice.ts";
import { cancelled } from "../loader.ts";
import { NarrowedLine } from "../narrowed-line.tsx";
import { ScreenState } from "../screen-state.tsx";
import { waitFor } from "../waits.ts";
import { Segmented } from "../segmented.tsx";
import { requests, selection, services, update, view } from "../store.ts";
import { LabelCardView } from "./label-card.tsx";

const ORDERS: readonly (readonly [CardOrder, string])[] = [
  ["cost", "Cost"],
  ["change", "Change"],
  ["value", "Name"],
];
/** More than this is no grid that anybody looks through: search narrows it. */
const MOST_CARDS = 200;
const DEFAULT_LABEL = "service_name";
const COUNTS_AT_ONCE = 4;

interface GridAnswer {
  question: string;
  label: string;
  now: SeriesAnswer & { hint?: string };
  before: SeriesAnswer;
}

export function LabelsScreen() {
  const label = view.value.groupBy || DEFAULT_LABEL;
  const [text, setText] = useState("");
  const [order, setOrder] = useState<CardOrder>("cost");
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const { answer, error, loading, isStale, retry } = useGrid(label);
  const hasBefore = useComparable(answer?.now);
  useEffect(() => setChosen([]), [label]);

  const cards = answer ? labelCards(answer.now, answer.label, answer.before, hasBefore) : [];
  const hasLabel = cards.some(({ value }) => value !== "");
  const shown = orderedCards(cards, text, order);
  const choose = (value: string): void =>
    setChosen(chosen.includes(value) ? chosen.filter((other) => other !== value) : [...chosen.slice(-1), value]);

  return (
    <main class="main screen" data-testid="labels-screen">
      <Notices />
      <div class="screen-head">
        <h1>Labels</h1>
        <LabelChooser label={label} />
        <p class="muted">{hasLabel && !isStale && `${cards.length} ${cards.length === 1 ? "value" : "values"}`}</p>
        <NarrowedLine />
        <input
          class="screen-search"
          type="search"
          placeholder="Search values"
          aria-label="Search values"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <Segmented label="Order" value={order} options={ORDERS} onChange={setOrder} />
        <button
          type="button"
          class="primary-button"
          data-testid="labels-compare"
          disabled={chosen.length !== 2}
          title={chosen.length === 2 ? `Compare ${chosen[0]} with ${chosen[1]}` : "Choose two values to compare them"}
          onClick={() => compare(label, chosen)}
        >
          {chosen.length === 2 ? "Compare these two" : "Tick two to compare"}
        </button>
      </div>
      <div class={`screen-body${isStale ? " is-stale-body" : ""}`} aria-busy={loading}>
        {hasLabel && answer ? (
          <ul class="label-grid">
            {shown.slice(0, MOST_CARDS).map((card) => (
              <LabelCardView
                key={`${answer.label} ${card.value}`}
                card={card}
                label={answer.label}
                rank={cards.toSorted((left, right) => right.total - left.total).indexOf(card)}
                isChosen={chosen.includes(card.value)}
                choose={() => choose(card.value)}
                open={() => open(answer.label, card.value)}
              />
            ))}
          </ul>
        ) : (
          <ScreenState error={error} loading={loading && (!answer || isStale)} retry={retry}>
            <NoValues label={label} hint={answer?.now.hint} />
          </ScreenState>
        )}
        {hasLabel && shown.length === 0 && (
          <NothingHere
            title={`No value of ${label} matches “${text}”`}
            isSmall
            also={[{ label: "Clear the search", act: () => setText("") }]}
          />
        )}
        {shown.length > MOST_CARDS && (
          <p class="screen-note muted">
            The first {MOST_CARDS} of {shown.length} values. Search for the others.
          </p>
        )}
      </div>
    </main>
  );
}

function open(label: string, value: string): void {
  const query = withValue(view.peek().query, label, value);
  if (query === undefined) announce("Mend the selector first: what it says would be lost");
  else update({ query, screen: "profile", groupBy: "", zoom: "", pinned: "" });
}

/** The first one chosen is what the other is compared with. */
function compare(label: string, [base, other]: readonly string[]): void {
  const { query, from, to } = view.peek();
  const baseQuery = withValue(query, label, base ?? "");
  const newQuery = withValue(query, label, other ?? "");
  if (baseQuery === undefined || newQuery === undefined) announce("Mend the selector first: what it says would be lost");
  else update({ screen: "compare", query: newQuery, baseQuery, baseFrom: from, baseTo: to, groupBy: "", zoom: "" });
}

function NoValues({ label, hint }: { label: string; hint: string | undefined }) {
  const byService = { label: "By service", act: () => update({ groupBy: "" }) };
  return (
    <NothingHere
      title={`Nothing in this range has the label ${label}`}
      why={hint}
      testId="no-values"
      also={label === DEFAULT_LABEL ? [] : [byService]}
      hint={{ text: "Labels come from the agent, from what a program sends, or with:", command: `candela push --label ${label}=VALUE` }}
    />
  );
}

function LabelChooser({ label }: { label: string }) {
  const { names } = useLabelNames();
  const counts = useValueCounts(names ?? []);
  const listed = names?.includes(label) ? names : [label, ...(names ?? [])];
  return (
    <label class="select-field">
      <span class="visually-hidden">Label</span>
      <select
        value={label}
        data-testid="label-chooser"
        onChange={(event) => {
          const { value } = event.currentTarget;
          update({ groupBy: value === DEFAULT_LABEL ? "" : value });
        }}
      >
        {listed.map((name) => (
          <option key={name} value={name}>
            {name}
            {counts.has(name) ? ` (${counts.get(name)})` : ""}
          </option>
        ))}
      </select>
    </label>
  );
}

/** How many values each label has, as the answers come. */
function useValueCounts(names: readonly string[]): ReadonlyMap<string, number> {
  const [counts, setCounts] = useState<ReadonlyMap<string, number>>(new Map());
  useEffect(() => {
    const abort = new AbortController();
    const pool = new RequestPool(COUNTS_AT_ONCE);
    const { query, range } = selection.peek();
    for (const name of names) {
      const ask = (): Promise<{ values: string[] }> =>
        requests.json("label-values", [["label", name], ["query", query], ...rangeParameters(range)], abort.signal);
      pool.run(abort.signal, ask).then(
        ({ values }) => setCounts((known) => new Map(known).set(name, values.length)),
        // The name stands there without its number.
        () => undefined,
      );
    }
    return () => abort.abort();
  }, [JSON.stringify(names)]);
  return counts;
}

interface Grid {
  answer: GridAnswer | undefined;
  error: ApiError | undefined;
  loading: boolean;
  /** The answer is that of an earlier question. */
  isStale: boolean;
  retry: () => void;
}

/**
 * Whether the range before the answer's was observed for long enough, as the services say. Those of a live range are often there
 * before the values are: what was known of the answer on the screen stays.
 */
function useComparable(answer: SeriesAnswer | undefined): boolean {
  const known = useRef<{ answer: SeriesAnswer; isComparable: boolean }>(undefined);
  const { data, isStale } = services.value;
  if (answer && data && !isStale && data.from === answer.from && data.to === answer.to)
    known.current = { answer, isComparable: isComparable(data) };
  return known.current?.answer === answer && (known.current?.isComparable ?? false);
}

/** The series of the label in the range, and in the one of the same length before. */
function useGrid(label: string): Grid {
  const [grid, setGrid] = useState<Omit<Grid, "isStale" | "retry">>({ answer: undefined, error: undefined, loading: true });
  const [attempt, setAttempt] = useState(0);
  const asked = selection.value;
  const { query, type, from, to, filters, file } = view.value;
  const question = JSON.stringify([query, type, from, to, filters, file, label, attempt]);
  const isOfAnother = grid.answer?.question !== question;
  const { range } = asked;
  useEffect(() => {
    const abort = new AbortController();
    const previous = { from: range.from - (range.to - range.from), to: range.from };
    const ask = (part: typeof range): Promise<SeriesAnswer> =>
      requests.json(
        "series",
        [...wholeParameters({ ...asked, range: part }), ["step", String(seriesStep(part))], ["group_by", label]],
        abort.signal,
      );
    setGrid((known) => ({ ...known, loading: true }));
    const since = performance.now();
    const cancel = (): void => {
      abort.abort();
      if (isOfAnother) setGrid({ answer: undefined, error: cancelled(performance.now() - since), loading: false });
      else setGrid((known) => ({ ...known, loading: false }));
    };
    const done = waitFor({ what: "the values of the label", since, isAsked: isOfAnother, cancel });
    abort.signal.addEventListener("abort", done);
    Promise.all([ask(range), ask(previous)]).then(
      ([now, before]) => {
        setGrid({ answer: { question, label, now, before }, error: undefined, loading: false });
      },
      (failure: unknown) => {
        if (abort.signal.aborted) return;
        const error = failure instanceof ApiError ? failure : new ApiError("window", String(failure), "Reload the page.");
        setGrid({ answer: undefined, error, loading: false });
      },
    ).finally(done);
    return () => abort.abort();
  }, [question, range.from, range.to]);
  return { ...grid, isStale: grid.answer !== undefined && isOfAnother, retry: () => setAttempt(attempt + 1) };
}
