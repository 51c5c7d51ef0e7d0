// The chart: a lane for each thread, all below each other, with what ran in it in the order of time. The engine paints; lanes' names,
// the axis and what is told of a box are elements.

import { computed, signal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ChartView, type BoxPlace } from "../../engine/chart-view.ts";
import { ROW_HEIGHT } from "../../engine/painter.ts";
import "../../styles/chart.css";
import { timeTicks } from "../../model/time-ticks.ts";
import type { PlacedLane } from "../../model/lane-rows.ts";
import { formatValue } from "../../model/units.ts";
import { chartView } from "../actions.ts";
import { clock } from "../clock.ts";
import { coloring } from "../coloring.ts";
import { perf } from "../highlight.ts";
import { chooseRange, takeRangeBack } from "../range-choice.ts";
import { shareOfAll } from "../share-of-all.ts";
import { ScreenState } from "../screen-state.tsx";
import { flameTheme } from "../theme.ts";
import { allLanesTotal, chart, chartMatches, followChart, placedLanes, shownChart, toggleLane } from "./chart-answer.ts";
import { ChartBar } from "./chart-bar.tsx";
import { BoxMirror, BoxTooltip, boxRowId } from "./chart-box.tsx";
import { NoTimes } from "./no-times.tsx";

const hovered = signal<BoxPlace | undefined>(undefined);
const selected = signal<BoxPlace | undefined>(undefined);
const pointer = signal({ x: 0, y: 0 });
/** What is seen: milliseconds from the start of the range, and pixels from the first row. */
const seen = signal({ left: 0, right: 0, top: 0 });

export function ChartPane() {
  useEffect(followChart, []);
  const { data, error, loading, isStale } = chart.value;
  if (!data) return <ScreenState error={error} loading={loading}>{null}</ScreenState>;
  if (data.header.timed === 0) return <NoTimes header={data.header} />;
  return (
    <div class={`chart${isStale ? " is-stale-body" : ""}`} aria-busy={loading}>
      <ChartBar />
      {data.header.partial && (
        <p class="chart-note" role="status">
          {data.header.partial_reason}
        </p>
      )}
      <Axis />
      <Picture />
    </div>
  );
}

function Picture() {
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const picture = useRef<HTMLCanvasElement>(null);
  const outlines = useRef<HTMLCanvasElement>(null);

  useEffect(() => {
    if (!scroller.current || !spacer.current || !picture.current || !outlines.current) return undefined;
    const engine = new ChartView(
      { scroller: scroller.current, spacer: spacer.current, picture: picture.current, outlines: outlines.current },
      flameTheme.peek(),
      perf,
      {
        hovered: (place, x, y) => {
          hovered.value = place;
          if (place) pointer.value = { x, y };
        },
        selected: (place) => (selected.value = place),
        chosen: chooseTimeOf,
        moved: (span, top) => (seen.value = { ...span, top }),
      },
    );
    chartView.current = engine;
    showChart(engine);
    engine.setLanes(placedLanes.peek());
    return () => {
      engine.destroy();
      chartView.current = undefined;
      hovered.value = undefined;
      selected.value = undefined;
    };
  }, []);
  useSignalEffect(() => {
    void shownChart.value;
    if (chartView.current) showChart(chartView.current);
  });
  useSignalEffect(() => chartView.current?.setLanes(placedLanes.value));
  useSignalEffect(() => chartView.current?.setTheme(flameTheme.value));
  useSignalEffect(() => chartView.current?.setColorBy(coloring.value));
  useSignalEffect(() => chartView.current?.setMatches(chartMatches.value));

  return (
    <>
      <div
        class="flame-scroller chart-scroller"
        ref={scroller}
        role="treegrid"
        tabIndex={0}
        aria-label="Chart of threads over time. Arrow keys move, plus and minus zoom, Enter chooses the time of a box."
        aria-activedescendant={selected.value ? boxRowId : undefined}
        data-testid="chart"
        onKeyDown={onKeyDown}
      >
        <div class="flame-spacer" ref={spacer} role="presentation">
          <div class="flame-stage" role="presentation">
            <canvas ref={picture} data-testid="chart-canvas" aria-hidden="true" />
            <canvas ref={outlines} class="flame-outlines" aria-hidden="true" />
          </div>
          <LaneNames />
        </div>
        <BoxMirror place={selected.value} />
      </div>
      <BoxTooltip place={hovered.value} at={pointer.value} />
    </>
  );
}

function showChart(engine: ChartView): void {
  const data = shownChart.peek();
  if (!data) return;
  engine.setColorBy(coloring.peek());
  engine.setChart(data, data.header.from, data.header.to);
  engine.setMatches(chartMatches.peek());
}

/** To whole milliseconds, which is what an address holds. */
function chooseTimeOf({ placed, depth, box }: BoxPlace): void {
  const from = shownChart.peek()?.header.from;
  const row = placed.lane.rows[depth];
  if (from === undefined || !row) return;
  chooseRange({ from: String(Math.floor(from + row.start[box])), to: String(Math.ceil(from + row.end[box])) });
}

function onKeyDown(event: KeyboardEvent): void {
  const engine = chartView.current;
  if (!engine || event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLButtonElement) return;
  const actions: Record<string, () => void> = {
    ArrowLeft: () => (event.shiftKey ? engine.pan(-1) : engine.move(-1, 0)),
    ArrowRight: () => (event.shiftKey ? engine.pan(1) : engine.move(1, 0)),
    ArrowUp: () => engine.move(0, -1),
    ArrowDown: () => engine.move(0, 1),
    "+": () => engine.zoom(1),
    "=": () => engine.zoom(1),
    "-": () => engine.zoom(-1),
    Home: () => engine.showWhole(),
    Enter: () => engine.chooseSelected(),
    Backspace: takeRangeBack,
  };
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  event.stopPropagation();
  action();
}

/** Names around what is seen: with a thousand lanes not all of them are elements. In steps, so that not every pixel makes them anew. */
const OVERSCAN_PIXELS = 2000;
const SCROLL_STEP = 500;
const nearTop = computed(() => Math.floor(seen.value.top / SCROLL_STEP) * SCROLL_STEP);

function LaneNames() {
  const top = nearTop.value;
  const total = allLanesTotal.value;
  const unit = shownChart.value?.header.unit ?? "";
  const near = placedLanes.value.filter(({ headRow, depth }) => {
    const [first, last] = [headRow * ROW_HEIGHT, (headRow + depth + 1) * ROW_HEIGHT];
    return last > top - OVERSCAN_PIXELS && first < top + OVERSCAN_PIXELS;
  });
  return (
    <div class="lane-names" role="rowgroup">
      {near.map((placed) => (
        <LaneName key={placed.lane.title} placed={placed} total={total} unit={unit} />
      ))}
    </div>
  );
}

function LaneName({ placed, total, unit }: { placed: PlacedLane; total: number; unit: string }) {
  const { lane, isOpen, headRow, depth, first } = placed;
  const deeper = lane.rows.length - depth - first;
  const hidden = [first > 0 && `${first} outer`, deeper > 0 && `${deeper} inner`].filter((part) => part !== false);
  return (
    <div class="lane-name" role="row" style={{ transform: `translateY(${headRow * ROW_HEIGHT}px)` }} data-testid="lane" data-lane={lane.title}>
      <span role="gridcell">
        <button type="button" aria-expanded={isOpen} title={isOpen ? "Fold this lane" : "Unfold this lane"} onClick={() => toggleLane(lane)}>
          <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span> <strong>{lane.title}</strong>
        </button>
        <span class="muted">
          {" "}
          {formatValue(lane.total, unit)} · {shareOfAll(lane.total, total)}
          {isOpen && hidden.length > 0 && ` · ${hidden.join(" and ")} rows hidden`}
        </span>
      </span>
    </div>
  );
}

const TICK_PIXELS = 130;

function Axis() {
  const host = useRef<HTMLDivElement>(null);
  const width = useRef(signal(0)).current;
  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => (width.value = element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, [width]);
  const begin = shownChart.value?.header.from ?? 0;
  const { left, right } = seen.value;
  const { times, step } = timeTicks(begin + left, begin + right, width.value / TICK_PIXELS);
  return (
    <div class="chart-axis" ref={host} aria-hidden="true">
      {right > left &&
        times.map((time) => (
          <span key={time} style={{ left: `${((time - begin - left) / (right - left)) * 100}%` }}>
            {tickText(time, step)}
          </span>
        ))}
    </div>
  );
}

/** Below a millisecond the clock alone does not tell ticks apart. */
function tickText(time: number, step: number): string {
  const whole = Math.floor(time);
  const text = clock(whole, { milliseconds: step < 1000, seconds: step < 60e3 });
  return step < 1 ? `${text}${(time - whole).toFixed(3).slice(2)}` : text;
}
