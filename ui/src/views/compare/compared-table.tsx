// The functions of two profiles, by how they changed; exact whatever the picture leaves out.

import { computed } from "@preact/signals";
import { changeLevel, CHANGE_LEVELS, formatDifference, formatRelative } from "../../model/change.ts";
import {
  confidenceOf,
  describeConfidence,
  exchangeOf,
  formatInterval,
  sortCompared,
  withChange,
  withValue,
  type ComparedFunction,
} from "../../model/compared-functions.ts";
import { CHANGE_CHOICES, type ChangeChoice, type ComparedColumn, type Measure } from "../../state/schema.ts";
import { filterTop } from "../../model/top.ts";
import { formatValue } from "../../model/units.ts";
import { TableState } from "../empty-state.tsx";
import { FunctionList, PlaceHeader, SortHeader } from "../function-list.tsx";
import { tableFilter } from "../highlight.ts";
import { Segmented } from "../segmented.tsx";
import { top, update, view } from "../store.ts";
import { Truncated } from "../top-table.tsx";
import { levelToken } from "./change-colors.ts";
import { comparedFunctions, statistics } from "./compared.ts";

/** As they stand in the table. */
export const comparedRows = computed(() => {
  const { comparedMeasure: measure, comparedBy: column, comparedDescending: descending, changes } = view.value;
  const keeps = tableFilter.value;
  // Whoever searches finds every function, also one that only calls others.
  const known = keeps ? comparedFunctions.value : withValue(comparedFunctions.value, measure);
  const listed = withChange(known, measure, changes);
  return sortCompared(filterTop(listed, keeps), measure, column, descending);
});

/** Of all functions, whatever is searched: bars keep their lengths. */
const largestChange = computed(() => {
  const { comparedMeasure: measure } = view.value;
  return comparedFunctions.value.reduce((most, row) => Math.max(most, Math.abs(row.after[measure] - row.before[measure])), 0);
});

export function ComparedTable() {
  const { comparedMeasure: measure } = view.value;
  const unit = top.value.data?.unit ?? "";
  return (
    <div class={`top compared-table${statistics.value ? " has-intervals" : ""}`}>
      <div class="compared-measure">
        <Segmented
          label="Value"
          value={measure}
          options={[
            ["self", "Self"],
            ["total", "Total"],
          ]}
          onChange={(comparedMeasure) => update({ comparedMeasure })}
        />
        <ChangeFilter />
      </div>
      <FunctionList
        label="Functions by change."
        rows={comparedRows.value}
        head={
          <>
            <Head column="before" label="Before" />
            <Head column="after" label="After" />
            <Head column="change" label="Change" />
            {statistics.value && (
              <div role="columnheader" class="top-interval" title="Where the change lies, 95 times of 100; with a ? where exchanging instances, or windows of time, does not confirm it">
                95 %
              </div>
            )}
            <Head column="name" label="Function" />
            <PlaceHeader />
          </>
        }
        costs={(row) => <Costs row={row} measure={measure} unit={unit} />}
      />
      {comparedRows.value.length === 0 && <TableState />}
      <Truncated />
    </div>
  );
}

const CHANGE_TITLES: Record<ChangeChoice, string> = {
  all: "All",
  significant: "Significant",
  changed: "Changed",
  new: "New",
  gone: "Gone",
};

function ChangeFilter() {
  const choices = CHANGE_CHOICES.filter((choice) => choice !== "significant" || statistics.value);
  return (
    <Segmented
      label="Which functions"
      value={view.value.changes}
      options={choices.map((choice) => [choice, CHANGE_TITLES[choice]])}
      onChange={(changes) => update({ changes })}
    />
  );
}

function Head({ column, label }: { column: ComparedColumn; label: string }) {
  const { comparedBy: sortBy, comparedDescending: descending } = view.value;
  return (
    <SortHeader
      column={column}
      label={label}
      sortBy={sortBy}
      descending={descending}
      onSort={(comparedBy, comparedDescending) => update({ comparedBy, comparedDescending })}
    />
  );
}

function Costs({ row, measure, unit }: { row: ComparedFunction; measure: Measure; unit: string }) {
  const [was, is] = [row.before[measure], row.after[measure]];
  const whole = largestChange.value;
  const level = changeLevel(was, is, whole);
  const confidence = confidenceOf(row, measure);
  const isChance = confidence?.is_significant === false;
  return (
    <>
      <span class="top-before" role="gridcell">
        {was === 0 ? "–" : formatValue(was, unit)}
      </span>
      <span class="top-after" role="gridcell">
        {is === 0 ? "–" : formatValue(is, unit)}
      </span>
      <span
        class={`top-change cost${isChance ? " is-chance" : ""}`}
        role="gridcell"
        title={`${formatValue(was, unit)} before, ${formatValue(is, unit)} after`}
      >
        <span
          class="cost-bar"
          style={{
            width: `${whole > 0 ? (100 * Math.abs(is - was)) / whole : 0}%`,
            background: `var(${levelToken(Math.sign(level) * CHANGE_LEVELS)})`,
          }}
          aria-hidden="true"
        />
        <span class="cost-share">{formatDifference(was, is, unit)}</span>
        <span class="cost-value">{was === is ? "" : formatRelative(was, is)}</span>
      </span>
      {statistics.value && (
        <span class={`top-interval${isChance ? " is-chance" : ""}`} role="gridcell" title={describeConfidence(confidence, exchangeOf(statistics.value))}>
          {confidence && formatInterval(confidence)}
          {confidence?.confirmation === "doubtful" && " ?"}
        </span>
      )}
    </>
  );
}
