// The functions of two profiles, by how they changed; exact whatever the picture leaves out.

import { computed, signal } from "@preact/signals";
import { changeLevel, CHANGE_LEVELS, formatDifference, formatRelative } from "../model/change.ts";
import { sortCompared, type ComparedColumn, type ComparedFunction, type Measure } from "../model/compared-functions.ts";
import { filterTop } from "../model/top.ts";
import { formatValue } from "../model/units.ts";
import { TableState } from "../views/empty-state.tsx";
import { FunctionList, PlaceHeader, SortHeader } from "../views/function-list.tsx";
import { tablePattern } from "../views/highlight.ts";
import { Segmented } from "../views/segmented.tsx";
import { top } from "../views/store.ts";
import { Truncated } from "../views/top-table.tsx";
import { levelToken } from "./change-colors.ts";
import { comparedFunctions } from "./compared.ts";

interface Order {
  measure: Measure;
  column: ComparedColumn;
  descending: boolean;
}

const order = signal<Order>({ measure: "self", column: "change", descending: true });

const rows = computed(() => {
  const { measure, column, descending } = order.value;
  return sortCompared(filterTop(comparedFunctions.value, tablePattern.value), measure, column, descending);
});

/** Of all functions, whatever is searched: bars keep their lengths. */
const largestChange = computed(() => {
  const { measure } = order.value;
  return comparedFunctions.value.reduce((most, row) => Math.max(most, Math.abs(row.after[measure] - row.before[measure])), 0);
});

export function ComparedTable() {
  const { measure } = order.value;
  const unit = top.value.data?.unit ?? "";
  return (
    <div class="top compared-table">
      <div class="compared-measure">
        <Segmented
          label="Value"
          value={measure}
          options={[
            ["self", "Self"],
            ["total", "Total"],
          ]}
          onChange={(value) => (order.value = { ...order.peek(), measure: value })}
        />
      </div>
      <FunctionList
        label="Functions by change."
        rows={rows.value}
        head={
          <>
            <Head column="before" label="Before" />
            <Head column="after" label="After" />
            <Head column="change" label="Change" />
            <Head column="name" label="Function" />
            <PlaceHeader />
          </>
        }
        costs={(row) => <Costs row={row} measure={measure} unit={unit} />}
      />
      {rows.value.length === 0 && <TableState />}
      <Truncated />
    </div>
  );
}

function Head({ column, label }: { column: ComparedColumn; label: string }) {
  const { column: sortBy, descending } = order.value;
  return (
    <SortHeader
      column={column}
      label={label}
      sortBy={sortBy}
      descending={descending}
      onSort={(wanted, isDescending) =>
        (order.value = { ...order.peek(), column: wanted, descending: isDescending })
      }
    />
  );
}

function Costs({ row, measure, unit }: { row: ComparedFunction; measure: Measure; unit: string }) {
  const [was, is] = [row.before[measure], row.after[measure]];
  const whole = largestChange.value;
  const level = changeLevel(was, is, whole);
  return (
    <>
      <span class="top-before" role="gridcell">
        {was === 0 ? "–" : formatValue(was, unit)}
      </span>
      <span class="top-after" role="gridcell">
        {is === 0 ? "–" : formatValue(is, unit)}
      </span>
      <span class="top-change cost" role="gridcell">
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
    </>
  );
}
