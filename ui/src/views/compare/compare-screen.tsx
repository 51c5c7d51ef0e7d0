// Two selections in one picture: what one costs more than the other, where, and whether that may be chance.

import { useLayoutEffect } from "preact/hooks";
import "../../styles/comparison.css";
import "../../styles/compare-screen.css";
import { exchangeOf } from "../../model/compared-functions.ts";
import { FDR_CHOICES, type Normalization } from "../../state/schema.ts";
import { Notices } from "../empty-state.tsx";
import { FlamePane } from "../flame-pane.tsx";
import { Breadcrumb, FlameToolbar } from "../flame-toolbar.tsx";
import { Segmented } from "../segmented.tsx";
import { FileAfter, FileBefore, swapFiles } from "../files/file-sides.tsx";
import { FilterChips } from "../profile/filter-chips.tsx";
import { isStale, lookedAtFile, pictureSource, range, shownBase, update, view } from "../store.ts";
import { ChangeParts } from "./change-parts.tsx";
import { CompareExport } from "./compare-export.tsx";
import { ChangeLegend } from "./compared-legend.tsx";
import { comparedNode } from "./compared-node.tsx";
import { ComparedTable } from "./compared-table.tsx";
import { compared, lookAt, statistics, tooFewToConfirm } from "./compared.ts";
import { diffSource } from "./diff-source.ts";
import { AfterSide, BeforeSide } from "./side.tsx";

const QUESTIONS: Record<Normalization, string> = {
  share: "what part of the whole each is",
  absolute: "what each costs in the same time",
  robust: "what each costs, had most functions not changed",
};

export function CompareScreen() {
  // Before the first load, so that the tree of one side alone is not asked for.
  useLayoutEffect(() => {
    pictureSource.value = diffSource;
    return () => (pictureSource.value = undefined);
  }, []);
  const { panes } = view.value;
  const layout = panes === "flame" || panes === "table" ? panes : "both";
  const stale = isStale.value ? " is-stale" : "";
  const isFile = lookedAtFile.value !== undefined;
  const hasPicture = compared.value !== undefined;
  return (
    <main class="main compare-screen" aria-label="Compare">
      <h1 class="visually-hidden">Compare</h1>
      <Notices />
      <div class={`compare-sides${stale}`}>
        {isFile ? <FileBefore /> : <BeforeSide />}
        <button
          type="button"
          class="icon-button"
          title="Swap the sides"
          aria-label="Swap the sides"
          data-testid="swap-sides"
          onClick={isFile ? swapFiles : swap}
        >
          ⇄
        </button>
        {isFile ? <FileAfter /> : <AfterSide />}
      </div>
      <section class={`profile${stale}`} aria-label="Difference" aria-busy={isStale.value}>
        <FlameToolbar coloring={<Normalizations />} layouts={["both", "flame", "table"]} actions={<CompareExport />} />
        <Narrowing />
        <div class="filter-line">
          <Confidence />
          <ChangeParts />
          <Breadcrumb />
        </div>
        {hasPicture && <ChangeLegend normalization={legendOf(view.value.normalization)} />}
        <div class={`panes is-${layout}`}>
          {layout !== "table" && <FlamePane description={comparedNode} />}
          {layout !== "flame" && <ComparedTable />}
        </div>
      </section>
    </main>
  );
}

/** What both sides are narrowed by; a row only while there is something, since the picture needs the height. */
function Narrowing() {
  const { filters, path } = view.value;
  if (filters === "" && path === "") return null;
  return (
    <div class="filter-line" data-testid="narrowing">
      {filters !== "" && <FilterChips mayAdd={false} />}
      {path !== "" && <OnlyBelow path={path} />}
    </div>
  );
}

function OnlyBelow({ path }: { path: string }) {
  const names = path.split("\n").map((step) => step.split("\t", 1)[0]);
  return (
    <span class="compare-path">
      <span class="muted">only below</span>
      <strong class="truncated" title={names.join("\n")}>
        {names.at(-1)}
      </strong>
      <button type="button" class="link-button" onClick={() => update({ path: "", zoom: "" })}>
        everything
      </button>
    </span>
  );
}

function Normalizations() {
  const shown = compared.value;
  return (
    <>
      <span class="inline-field">
        <span>Compare</span>
        <Segmented
          label="Compare"
          value={view.value.normalization}
          options={[
            ["share", "Shares"],
            ["absolute", "Absolute"],
            ["robust", "Robust"],
          ]}
          onChange={(normalization) => update({ normalization })}
        />
      </span>
      <span class="inline-field">
        <span>Widths</span>
        <Segmented
          label="Widths"
          value={shown?.look.widths ?? "after"}
          options={[
            ["before", "Before"],
            ["after", "After"],
          ]}
          onChange={(widths) => lookAt({ widths })}
        />
      </span>
    </>
  );
}

function legendOf(normalization: Normalization): string {
  const shown = compared.value;
  const isUnknown = normalization === "robust" && (statistics.value?.size_factor ?? null) === null;
  if (isUnknown) return "robust: this server does not know how, so shares are compared";
  return `${normalization}: ${QUESTIONS[normalization]}${shown ? ` (before × ${shown.scale.toPrecision(3)})` : ""}`;
}

/** What the confidence rests on, or why there is none. */
function Confidence() {
  const known = statistics.value;
  if (!compared.value) return null;
  if (!known) return <p class="compare-confidence muted">This server tells no confidence: a change may be chance.</p>;
  const { what } = exchangeOf(known);
  const spread = `95 % intervals from the spread between ${known.clusters_before} and ${known.clusters_after} ${what}`;
  return (
    <p class="compare-confidence muted" data-testid="confidence">
      {known.reason ?? `${spread}${known.is_paired ? ", pair by pair" : ""}`}
      {tooFewToConfirm.value && `; too few ${what} to confirm any`}
      {known.tested > 0 && <FalseDiscoveries />}
    </p>
  );
}

const RATES = FDR_CHOICES.toSorted((left, right) => Number(left) - Number(right));

/** Who looks for anything at all takes more false alarms; who is woken by them, fewer. */
function FalseDiscoveries() {
  const { fdr } = view.value;
  const text = `${Number((100 * Number(fdr)).toFixed(1))} %`;
  return (
    <label class="compare-fdr">
      <span>; of what is called significant at most</span>
      <input
        type="range"
        min={0}
        max={RATES.length - 1}
        step={1}
        value={RATES.indexOf(fdr)}
        aria-label="How much of what is called significant may be chance"
        aria-valuetext={text}
        title="q-value: what part of the changes that are called significant may be chance"
        data-testid="fdr"
        onChange={(event) => update({ fdr: RATES[Number(event.currentTarget.value)] })}
      />
      <span>
        <strong data-testid="fdr-value">{text}</strong> is chance
      </span>
    </label>
  );
}

function swap(): void {
  const { query, baseQuery } = view.peek();
  const shown = range.peek();
  const base = shownBase.peek();
  if (!base) return;
  update({
    query: baseQuery === "" ? query : baseQuery,
    baseQuery: baseQuery === "" ? "" : query,
    from: String(Math.round(base.from)),
    to: String(Math.round(base.to)),
    baseFrom: String(Math.round(shown.from)),
    baseTo: String(Math.round(shown.to)),
    zoom: "",
    path: "",
  });
}
