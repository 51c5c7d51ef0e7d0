// The functions by cost, exact whatever the picture folds.

import { useComputed } from "@preact/signals";
import type { TopFunction } from "../api/types.ts";
import { formatInteger, formatShare, formatValue } from "../model/units.ts";
import { filterTop, sortTop } from "../model/top.ts";
import type { SortColumn } from "../state/schema.ts";
import { TableState } from "./empty-state.tsx";
import { FunctionList, PlaceHeader, SortHeader } from "./function-list.tsx";
import { tablePattern } from "./highlight.ts";
import { top, update, view } from "./store.ts";

const NO_FUNCTIONS: readonly TopFunction[] = [];

export function TopTable() {
  const functions = useComputed(() => top.value.data?.functions ?? NO_FUNCTIONS);
  const rows = useComputed(() => {
    const filtered = filterTop(functions.value, tablePattern.value);
    return sortTop(filtered, view.value.sortBy, view.value.descending);
  });
  const { total: whole = 0, unit = "" } = top.value.data ?? {};
  return (
    <div class="top">
      <FunctionList
        label="Functions by cost."
        rows={rows.value}
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
            <Cost value={self} whole={whole} unit={unit} column="self" />
            <Cost value={total} whole={whole} unit={unit} column="total" />
          </>
        )}
      />
      {rows.value.length === 0 && <TableState />}
      <Truncated />
    </div>
  );
}

function Head({ column, label }: { column: SortColumn; label: string }) {
  const { sortBy, descending } = view.value;
  return (
    <SortHeader
      column={column}
      label={label}
      sortBy={sortBy}
      descending={descending}
      onSort={(wanted, isDescending) => update({ sortBy: wanted, descending: isDescending })}
    />
  );
}

function Cost({
  value,
  whole,
  unit,
  column,
}: {
  value: number;
  whole: number;
  unit: string;
  column: "self" | "total";
}) {
  return (
    <span class={`top-${column} cost`} role="gridcell" title={formatValue(value, unit)}>
      <span
        class="cost-bar"
        style={{ width: `${whole > 0 ? Math.min(100, (100 * value) / whole) : 0}%` }}
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
