// A function in the middle: everything that calls it above, everything that it calls below, summed over all places where it runs.

import { useEffect } from "preact/hooks";
import "../../styles/sandwich.css";
import { formatValue } from "../../model/units.ts";
import { NothingHere } from "../nothing-here.tsx";
import { shareOfAll } from "../share-of-all.ts";
import { view } from "../store.ts";
import { TopTable } from "../top-table.tsx";
import { ScreenState } from "../screen-state.tsx";
import { followSandwich, sandwich } from "./sandwich-answer.ts";
import { SideFlame } from "./side-flame.tsx";

export function SandwichPane() {
  useEffect(followSandwich, []);
  const { pinned } = view.value;
  return (
    <>
      <TopTable />
      <div class="sandwich" data-testid="sandwich">
        {pinned === "" ? (
          <div class="state" role="status">
            <h2>Choose a function</h2>
            <p>Click one in the table, or press m on a box of the flame graph.</p>
          </div>
        ) : (
          <Halves />
        )}
      </div>
    </>
  );
}

function Halves() {
  const { data, error, loading, isStale } = sandwich.value;
  if (!data) return <ScreenState error={error} loading={loading}>{null}</ScreenState>;
  const { name, header, callers, callees } = data;
  if (callees.isEmpty) return <NothingHere title="Not in this selection" why={header.hint ?? `No stack has ${name}`} />;
  return (
    <div class={`sandwich-halves${isStale ? " is-stale-body" : ""}`} aria-busy={loading}>
      <SideFlame tree={callers} orientation="flame" label={`Callers of ${name}`} testId="callers" />
      <p class="sandwich-middle">
        <strong class="truncated" title={name}>
          {name}
        </strong>
        <span>
          {formatValue(header.function_total, header.unit)} · {shareOfAll(header.function_total, header.total)}
        </span>
        <span class="muted">self {formatValue(callees.self[0] ?? 0, header.unit)} · double click a box to go there</span>
      </p>
      <SideFlame tree={callees} orientation="icicle" label={`Callees of ${name}`} testId="callees" />
    </div>
  );
}
