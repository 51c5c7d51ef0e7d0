// A table of functions: only the rows in sight are in the document. What stands in the columns is the caller's.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { shortNameOf } from "../model/names.ts";
import { copy, openSource, pinFunction, zoomToHighlight } from "./actions.ts";
import { hoveredFunction, hoveredNode } from "./highlight.ts";
import { announce } from "./notice.ts";
import { flameTree, update, view } from "./store.ts";

const ROW_HEIGHT = 25;
const OVERSCAN = 6;

interface ListedFunction {
  name: string;
  file: string;
  mapping: string;
  kind: string;
}

interface FunctionListProps<R extends ListedFunction> {
  label: string;
  rows: readonly R[];
  /** Column heads, of which the last is that of the place. */
  head: ComponentChildren;
  /** The cells before name and place. */
  costs: (row: R) => ComponentChildren;
}

export function FunctionList<R extends ListedFunction>({ label, rows, head, costs }: FunctionListProps<R>) {
  const scroller = useRef<HTMLDivElement>(null);
  const scrollTop = useSignal(0);
  const height = useSignal(600);
  const active = useSignal(-1);

  useEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => (height.value = element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, [height]);

  const first = Math.max(0, Math.floor(scrollTop.value / ROW_HEIGHT) - OVERSCAN);
  const last = Math.min(rows.length, Math.ceil((scrollTop.value + height.value) / ROW_HEIGHT) + OVERSCAN);

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 };
    const move = moves[event.key];
    if (move !== undefined) {
      event.preventDefault();
      active.value = Math.max(0, Math.min(rows.length - 1, active.value + move));
      scroller.current?.scrollTo({ top: Math.max(0, (active.value - 4) * ROW_HEIGHT) });
      hoveredFunction.value = rows[active.value]?.name ?? "";
    } else if (event.key === "Enter" && rows[active.value]) pinFunction(rows[active.value].name);
    else if (event.key === "o" && rows[active.value]) openSource(rows[active.value].name);
    else if (event.key === "c") {
      event.preventDefault();
      // Elsewhere the same key compares: who sees names wants one of them.
      event.stopPropagation();
      copyNameOf(rows[active.value]?.name ?? view.peek().pinned);
    } else if (event.key === "Escape" && view.peek().pinned !== "") {
      event.preventDefault();
      update({ pinned: "" });
    }
  };

  return (
    <div
      class="top-scroller"
      ref={scroller}
      data-testid="top-table"
      role="grid"
      tabIndex={0}
      aria-label={`${label} Arrow keys move, Enter highlights, c copies the name.`}
      aria-rowcount={rows.length + 1}
      aria-activedescendant={active.value >= 0 ? `top-row-${active.value}` : undefined}
      onKeyDown={onKeyDown}
      onScroll={(event) => (scrollTop.value = event.currentTarget.scrollTop)}
      onPointerLeave={() => (hoveredFunction.value = "")}
    >
      <div class="top-head" role="row">
        {head}
      </div>
      <div class="top-rows" role="rowgroup" style={{ height: `${rows.length * ROW_HEIGHT}px` }}>
        {rows.slice(first, last).map((row, index) => (
          <Row
            key={`${row.name}\u0000${row.mapping}\u0000${row.file}`}
            row={row}
            position={first + index}
            isActive={first + index === active.value}
          >
            {costs(row)}
          </Row>
        ))}
      </div>
    </div>
  );
}

function copyNameOf(name: string): void {
  if (name === "") announce("Choose a function first, with the arrow keys: then c copies its name");
  else void copy(name, `the name ${shortNameOf(name)}`);
}

interface RowProps {
  row: ListedFunction;
  position: number;
  isActive: boolean;
  children: ComponentChildren;
}

function Row({ row, position, isActive, children }: RowProps) {
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
      {children}
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

interface SortHeaderProps<C extends string> {
  column: C;
  label: string;
  sortBy: C;
  descending: boolean;
  onSort: (column: C, descending: boolean) => void;
}

/** Numbers begin with the largest and names with the first. */
export function SortHeader<C extends string>({ column, label, sortBy, descending, onSort }: SortHeaderProps<C>) {
  const isSorted = sortBy === column;
  return (
    <div
      role="columnheader"
      class={`top-${column}`}
      aria-sort={isSorted ? (descending ? "descending" : "ascending") : "none"}
    >
      <button type="button" onClick={() => onSort(column, isSorted ? !descending : column !== "name")}>
        {label}
        <span class="sort-mark" aria-hidden="true">
          {isSorted ? (descending ? "▾" : "▴") : ""}
        </span>
      </button>
    </div>
  );
}

/** The head of what every list ends with. */
export function PlaceHeader() {
  return (
    <div role="columnheader" class="top-place">
      File and binary
    </div>
  );
}
