// The functions by cost, exact whatever the picture folds.

import { computed } from "@preact/signals";
import type { TopFunction } from "../api/types.ts";
import { formatInteger, formatShare, formatValue } from "../model/units.ts";
import { filterTop, sortTop } from "../model/top.ts";
import type { SortColumn } from "../state/schema.ts";
import { TableState } from "./empty-state.tsx";
import { FunctionList, PlaceHeader, SortHeader } from "./function-list.tsx";
import { tableFilter } from "./highlight.ts";
import { top, update, viewField } from "./store.ts";

const NO_FUNCTIONS: readonly TopFunction[] = [];
const sortBy = viewField("sortBy");
const descending = viewField("descending");

const functions = computed(() => top.value.data?.functions ?? NO_FUNCTIONS);
/** As they stand in the table. */
export const topRows = computed(() => sortTop(filterTop(functions.value, tableFilter.value), sortBy.value, descending.value));
// Bars are for the order within a column; of the whole, most would be as long as a dash.
const largestCosts = computed(() => ({
  self: functions.value.reduce((most, { self }) => Math.max(most, self), 0),
  total: functions.value.reduce((most, { total }) => Math.max(most, total), 0),
}));

export function TopTable() {
  const { total: whole = 0, unit = "" } = top.value.data ?? {};
  return (
    <div class="top">
      <FunctionList
        label="Functions by cost."
        rows={topRows.value}
        head={
          <>
            <Head column="self" label="Self" />
            <Head column="total" label="Total" />
            <Head column="name" label="Function" />
            <PlaceHeader />
          </>
        }
        costs={({ self, total }) => (
          <>
            <Cost value={self} whole={whole} largest={largestCosts.value.self} unit={unit} column="self" />
            <Cost value={total} whole={whole} largest={largestCosts.value.total} unit={unit} column="total" />
          </>
        )}
      />
      {topRows.value.length === 0 && <TableState />}
      <Truncated />
    </div>
  );
}

function Head({ column, label }: { column: SortColumn; label: string }) {
  return (
    <SortHeader
      column={column}
      label={label}
      sortBy={sortBy.value}
      descending={descending.value}
      onSort={(wanted, isDescending) => update({ sortBy: wanted, descending: isDescending })}
    />
  );
}

function Cost({
  value,
  whole,
  largest,
  unit,
  column,
}: {
  value: number;
  whole: number;
  /** Of the column. */
  largest: number;
  unit: string;
  column: "self" | "total";
}) {
  return (
    <span class={`top-${column} cost`} role="gridcell" title={formatValue(value, unit)}>
      <span
        class="cost-bar"
        style={{ width: `${largest > 0 ? (100 * value) / largest : 0}%` }}
        aria-hidden="true"
      />
      <span class="cost-share">{value === 0 ? "–" : formatShare(value, whole)}</span>
      <span class="cost-value">{value === 0 ? "" : formatValue(value, unit)}</span>
    </span>
  );
}

/** How many functions there are that the table lacks. */
export function Truncated() {
  const { shown, total } = top.value.data?.truncated ?? { shown: 0, total: 0 };
  if (shown >= total) return null;
  return (
    <p class="top-note muted">
      The first {formatInteger(shown)} of {formatInteger(total)} functions
    </p>
  );
}
