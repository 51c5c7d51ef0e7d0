// The rows of the code: only those in sight are in the document. Opens at the hottest line.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { textOf, type CodeRow, type CodeValue, type SourceAnswer } from "../../model/source-rows.ts";
import { formatShare, formatValue } from "../../model/units.ts";
import { rowWindow, scrollToRow } from "../../model/virtual-rows.ts";
import { copy, sourceSteps } from "../actions.ts";
import { wholeTotal } from "../whole.ts";
import { choose, chosenRow, goToHottest, matches, reveals, shownCode, stepCode } from "./code-steps.ts";

const ROW_HEIGHT = 20;
const OVERSCAN = 12;
const PAGE_ROWS = 20;
const HEAT_LEVELS = 6;

interface CodeListProps {
  rows: CodeRow[];
  hasText: boolean;
  answer: SourceAnswer;
  place: NonNullable<SourceAnswer["place"]>;
  isStale: boolean;
}

export function CodeList({ rows, hasText, answer, place, isStale }: CodeListProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const scrollTop = useSignal(0);
  const height = useSignal(600);

  useEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => (height.value = element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, [height]);
  useLayoutEffect(() => {
    shownCode.value = { rows, whole: place.total, hottestLine: place.hottest_line ?? 0 };
  }, [rows, place]);
  // Once, and again when the reader opens the text: a refresh must not take the view away from where the reader is.
  useEffect(() => {
    chosenRow.value = -1;
    goToHottest();
  }, [hasText]);
  useEffect(() => {
    sourceSteps.step = stepCode;
    return () => (sourceSteps.step = undefined);
  }, []);
  useSignalEffect(() => {
    void reveals.value;
    const row = chosenRow.peek();
    const element = scroller.current;
    if (row < 0 || !element) return;
    const top = scrollToRow(row, {
      rows: shownCode.peek().rows.length,
      rowHeight: ROW_HEIGHT,
      scrollTop: element.scrollTop,
      height: element.clientHeight,
    });
    if (top !== undefined) element.scrollTo({ top });
  });

  const { first, last, listHeight, top } = rowWindow({
    rows: rows.length,
    rowHeight: ROW_HEIGHT,
    scrollTop: scrollTop.value,
    height: height.value,
    overscan: OVERSCAN,
  });
  const matched = new Set(matches.value);
  const isChosenInSight = chosenRow.value >= first && chosenRow.value < last;
  const numbers = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index);
  return (
    <div class={`code${isStale ? " is-stale-body" : ""}`} aria-busy={isStale}>
      <div class="code-head" aria-hidden="true">
        <span>Self</span>
        <span>Total</span>
        <span>Line</span>
        <span>{place.file === "" ? "Code" : place.file}</span>
      </div>
      <div
        class="code-scroller"
        ref={scroller}
        role="grid"
        tabIndex={0}
        aria-label="Code. Arrow keys move, n and N go to the next and the previous hot line, h to the hottest, c copies file and line."
        aria-rowcount={rows.length}
        aria-activedescendant={isChosenInSight ? `code-${chosenRow.value}` : undefined}
        data-testid="code"
        onScroll={(event) => (scrollTop.value = event.currentTarget.scrollTop)}
        onKeyDown={(event) => onKeyDown(event, place.file)}
      >
        <div role="rowgroup" class="code-rows" style={{ height: `${listHeight}px` }}>
          <div role="presentation" style={{ transform: `translateY(${top}px)` }}>
            {numbers.map((number) => (
              <Row key={number} row={rows[number]} number={number} answer={answer} place={place} isMatched={matched.has(number)} />
            ))}
          </div>
        </div>
      </div>
    </div>
  );
}

interface RowProps {
  row: CodeRow;
  number: number;
  answer: SourceAnswer;
  place: CodeValue;
  isMatched: boolean;
}

function Row({ row, number, answer, place, isMatched }: RowProps) {
  const value = row.kind === "line" || row.kind === "unknown" ? row.value : undefined;
  const state = [
    `is-${row.kind}`,
    isMatched ? "is-matched" : "",
    row.kind === "line" && row.isRepeated ? "is-repeated" : "",
    value ? `heat-${heatOf(value.total, place.total)}` : "",
  ];
  return (
    <div
      class={`code-row ${state.filter((name) => name !== "").join(" ")}`}
      role="row"
      id={`code-${number}`}
      aria-rowindex={number + 1}
      aria-selected={chosenRow.value === number}
      data-testid="code-row"
      data-line={row.kind === "line" ? row.line : undefined}
      data-kind={row.kind}
      onClick={() => (chosenRow.value = number)}
    >
      <Cost value={value?.self ?? 0} answer={answer} whole={place.total} name="self" />
      <Cost value={value?.total ?? 0} answer={answer} whole={place.total} name="total" />
      <span class="code-line" role="gridcell">
        {row.kind === "line" ? row.line : row.kind === "unknown" ? "?" : ""}
      </span>
      <span class="code-text" role="gridcell">
        {row.kind === "unknown" ? "Samples of which the line is unknown" : <Text row={row} />}
      </span>
    </div>
  );
}

function Text({ row }: { row: CodeRow }) {
  if (row.kind !== "instruction") return <>{textOf(row)}</>;
  const { address, bytes, other } = row.instruction;
  return (
    <>
      <span class="code-address" title={bytes}>
        {address}
      </span>
      {textOf(row)}
      {other && <span class="muted code-other" title={`${other.file}:${other.line}`}>{`inlined ${other.function}`}</span>}
    </>
  );
}

interface CostProps {
  value: number;
  answer: SourceAnswer;
  /** Total of the function: what the bar is a part of. */
  whole: number;
  name: "self" | "total";
}

function Cost({ value, answer: { unit, total }, whole, name }: CostProps) {
  if (value === 0) return <span class="code-cost" role="gridcell" aria-label={`no ${name}`} />;
  const all = wholeTotal.value;
  const shares = [
    `${formatShare(value, total)} of view`,
    ...(all === undefined || all === total ? [] : [`${formatShare(value, all)} of all`]),
    `${formatShare(value, whole)} of the function`,
  ];
  return (
    <span
      class="code-cost cost"
      role="gridcell"
      data-testid={`line-${name}`}
      title={`${name} ${formatValue(value, unit)}\n${shares.join("\n")}`}
    >
      <span class="cost-bar" style={{ width: `${whole > 0 ? Math.min(100, (100 * value) / whole) : 0}%` }} aria-hidden="true" />
      <span class="cost-share">{formatShare(value, total)}</span>
      <span class="cost-value">{formatValue(value, unit)}</span>
    </span>
  );
}

/** Half of a function is as hot as it gets: a line that takes more has nothing to be compared with. */
function heatOf(value: number, whole: number): number {
  const share = whole > 0 ? value / whole : 0;
  return Math.max(1, Math.min(HEAT_LEVELS, Math.ceil(share * 2 * HEAT_LEVELS)));
}

const step = (by: number) => (): void => choose(Math.max(0, chosenRow.peek()) + by);

function onKeyDown(event: KeyboardEvent, file: string): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const actions: Record<string, () => void> = {
    ArrowDown: step(1),
    ArrowUp: step(-1),
    PageDown: step(PAGE_ROWS),
    PageUp: step(-PAGE_ROWS),
    Home: step(-Number.MAX_SAFE_INTEGER),
    End: step(Number.MAX_SAFE_INTEGER),
    n: () => stepCode(1),
    N: () => stepCode(-1),
    h: goToHottest,
    c: () => copyPlace(file),
  };
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function copyPlace(file: string): void {
  const row = shownCode.peek().rows[chosenRow.peek()];
  if (!row) return;
  if (row.kind === "line") void copy(`${file}:${row.line}`, "file and line");
  else void copy(textOf(row), "the instruction");
}
