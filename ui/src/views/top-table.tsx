// The functions by cost, exact whatever the picture folds. Only the rows in sight are in the document.

import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { TopFunction } from "../api/types.ts";
import { formatInteger, formatShare, formatValue } from "../model/units.ts";
import { shortNameOf } from "../model/names.ts";
import { filterTop, sortTop } from "../model/top.ts";
import { pinFunction, zoomToHighlight } from "./actions.ts";
import { TableState } from "./empty-state.tsx";
import { hoveredFunction, hoveredNode, tablePattern } from "./highlight.ts";
import type { SortColumn } from "../state/schema.ts";
import { flameTree, top, update, view } from "./store.ts";

const ROW_HEIGHT = 25;
const OVERSCAN = 6;
const NO_FUNCTIONS: readonly TopFunction[] = [];

export function TopTable() {
  const scroller = useRef<HTMLDivElement>(null);
  const scrollTop = useSignal(0);
  const height = useSignal(600);
  const active = useSignal(-1);
  const functions = useComputed(() => top.value.data?.functions ?? NO_FUNCTIONS);
  const rows = useComputed(() => {
    const filtered = filterTop(functions.value, tablePattern.value);
    return sortTop(filtered, view.value.sortBy, view.value.descending);
  });

  useEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => (height.value = element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, [height]);

  const answer = top.value.data;
  const shown = rows.value;
  const first = Math.max(0, Math.floor(scrollTop.value / ROW_HEIGHT) - OVERSCAN);
  const last = Math.min(shown.length, Math.ceil((scrollTop.value + height.value) / ROW_HEIGHT) + OVERSCAN);

  const onKeyDown = (event: KeyboardEvent): void => {
    const moves: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 };
    const move = moves[event.key];
    if (move !== undefined) {
      event.preventDefault();
      active.value = Math.max(0, Math.min(shown.length - 1, active.value + move));
      scroller.current?.scrollTo({ top: Math.max(0, (active.value - 4) * ROW_HEIGHT) });
      hoveredFunction.value = shown[active.value]?.name ?? "";
    } else if (event.key === "Enter" && shown[active.value]) pinFunction(shown[active.value].name);
    else if (event.key === "Escape" && view.peek().pinned !== "") {
      event.preventDefault();
      update({ pinned: "" });
    }
  };

  return (
    <div class="top">
      <div
        class="top-scroller"
        ref={scroller}
        data-testid="top-table"
        role="grid"
        tabIndex={0}
        aria-label="Functions by cost. Arrow keys move, Enter highlights."
        aria-rowcount={shown.length + 1}
        aria-activedescendant={active.value >= 0 ? `top-row-${active.value}` : undefined}
        onKeyDown={onKeyDown}
        onScroll={(event) => (scrollTop.value = event.currentTarget.scrollTop)}
        onPointerLeave={() => (hoveredFunction.value = "")}
      >
        <div class="top-head" role="row">
          <SortHeader column="self" label="Self" />
          <SortHeader column="total" label="Total" />
          <SortHeader column="name" label="Function" />
          <div role="columnheader" class="top-place">
            File and binary
          </div>
        </div>
        <div class="top-rows" role="rowgroup" style={{ height: `${shown.length * ROW_HEIGHT}px` }}>
          {answer &&
            shown
              .slice(first, last)
              .map((row, index) => (
                <TopRow
                  key={`${row.name}\u0000${row.mapping}\u0000${row.file}`}
                  row={row}
                  position={first + index}
                  isActive={first + index === active.value}
                  whole={answer.total}
                  unit={answer.unit}
                />
              ))}
        </div>
      </div>
      {shown.length === 0 && <TableState />}
      {answer?.truncated && answer.truncated.shown < answer.truncated.total && (
        <p class="top-note muted">
          The first {formatInteger(answer.truncated.shown)} of {formatInteger(answer.truncated.total)} functions
        </p>
      )}
    </div>
  );
}

function SortHeader({ column, label }: { column: SortColumn; label: string }) {
  const { sortBy, descending } = view.value;
  const isSorted = sortBy === column;
  return (
    <div
      role="columnheader"
      class={`top-${column}`}
      aria-sort={isSorted ? (descending ? "descending" : "ascending") : "none"}
    >
      <button
        type="button"
        onClick={() => update({ sortBy: column, descending: isSorted ? !descending : column !== "name" })}
      >
        {label}
        <span class="sort-mark" aria-hidden="true">
          {isSorted ? (descending ? "▾" : "▴") : ""}
        </span>
      </button>
    </div>
  );
}

interface TopRowProps {
  row: TopFunction;
  position: number;
  isActive: boolean;
  whole: number;
  unit: string;
}

function TopRow({ row, position, isActive, whole, unit }: TopRowProps) {
  const tree = flameTree.value;
  const node = hoveredNode.value;
  const isLinked = tree !== undefined && node > 0 && node < tree.length && tree.nameOf(node) === row.name;
  const place = [row.file, row.mapping].filter((part) => part !== "").join(" · ");
  return (
    <div
      class={`top-row${isLinked ? " is-linked" : ""}${isActive ? " is-active" : ""}`}
      role="row"
      id={`top-row-${position}`}
      data-testid="top-row"
      data-function={row.name}
      aria-rowindex={position + 2}
      aria-selected={view.value.pinned === row.name}
      style={{ transform: `translateY(${position * ROW_HEIGHT}px)` }}
      title={`${row.name}${place === "" ? "" : `\n${place}`}\nClick to highlight, double click to go there`}
      onPointerEnter={() => (hoveredFunction.value = row.name)}
      onClick={() => pinFunction(row.name)}
      onDblClick={() => {
        update({ pinned: row.name });
        zoomToHighlight();
      }}
    >
      <Cost value={row.self} whole={whole} unit={unit} column="self" />
      <Cost value={row.total} whole={whole} unit={unit} column="total" />
      <span class="top-name" role="gridcell">
        <FunctionName name={row.name} />
        {row.kind === "kernel" && <span class="kind">kernel</span>}
      </span>
      <span class="top-place muted truncated" role="gridcell">
        {place}
      </span>
    </div>
  );
}

/**
 * The telling end of a long name first, what it belongs to after it, so that a narrow column still tells rows apart. The document
 * has them in the order of the name: the stylesheet turns them around.
 */
function FunctionName({ name }: { name: string }) {
  const short = shortNameOf(name);
  if (short === name) return <span class="truncated">{name}</span>;
  if (!name.endsWith(short)) {
    return (
      <>
        <span class="truncated" aria-hidden="true">
          {short}
        </span>
        <span class="visually-hidden">{name}</span>
      </>
    );
  }
  return (
    <span class="top-full-name">
      <span class="muted truncated top-path">{name.slice(0, -short.length)}</span>
      <span class="truncated">{short}</span>
    </span>
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
