// The heatmap itself: a canvas with a cursor. Dragging, or two times Enter, chooses the range of the whole page; with Shift it marks one
// to be compared.

import { computed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { selectionParameters, type Selection } from "../../api/client.ts";
import {
  cellAt,
  cellRange,
  enclosingRange,
  HEAT_LEVELS,
  heatLevel,
  heatmapStep,
  heatSteps,
  mostProfiles,
  placeWithin,
  sampleStep,
  type CellPlace,
  type HeatCell,
  type HeatmapAnswer,
} from "../../model/heatmap.ts";
import { HEATMAP_CHOICES, type HeatmapOf } from "../../state/schema.ts";
import { isCpuTime } from "../../model/profile-type.ts";
import { axisRange } from "../../model/series.ts";
import { formatLength } from "../../model/time-ticks.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { formatCount, formatRate, formatValue } from "../../model/units.ts";
import "../../styles/screens.css";
import { clock } from "../clock.ts";
import { besideThePicture } from "../empty-state.tsx";
import { Loader } from "../loader.ts";
import { Markers } from "../markers.tsx";
import { chooseRange, takeRangeBack } from "../range-choice.ts";
import { markRange, marks } from "../range-marks.ts";
import { Skeleton } from "../skeleton.tsx";
import { question, requests, selection, series, update, viewField } from "../store.ts";
import { chartTheme, tokenReader } from "../theme.ts";

const ROWS = 12;
const SAMPLE_ROWS = 50;
const HEIGHT = 60;
/** Twice as many pixels as rows. */
const SAMPLE_HEIGHT = 100;
/** In longer ranges samples are looked at when they are asked for. */
const LONGEST_AUTO_MILLISECONDS = 86_400e3;
const MINIMUM_DRAG_PIXELS = 4;
/** Columns and rows that a key moves the cursor by. */
const ARROWS: Record<string, [number, number] | undefined> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const loader = new Loader<HeatmapAnswer>("the heatmap");
const countedThings = viewField("heatmapOf");

/** What the picture spans: the same as the series above. */
const axis = computed((): TimeRange => {
  const answer = series.value.data;
  return answer ? axisRange(answer, answer) : selection.value.range;
});

/** Of the canvas: shades from 1 on, the marks over them. */
const colors = computed(() => {
  void chartTheme.value;
  const { color } = tokenReader();
  return {
    heat: Array.from({ length: HEAT_LEVELS }, (_, level) => color(`--heat-${level + 1}`)),
    chosen: color("--accent-soft"),
    cursor: color("--focus"),
  };
});

const HEATMAP_TITLES: Record<HeatmapOf, string> = { auto: "auto", samples: "samples", profiles: "profiles" };

/** Samples where their times are stored, and the question is not too large. */
async function ask(asked: Selection, of: HeatmapOf, width: number, abort: AbortSignal): Promise<HeatmapAnswer> {
  const { from, to } = asked.range;
  const inQuestion = (what: string, step: number, rows: number): Promise<HeatmapAnswer> =>
    requests.json<HeatmapAnswer>(
      "heatmap",
      [...selectionParameters(asked), ["of", what], ["step", String(step)], ["buckets", String(rows)]],
      abort,
    );
  if (of === "samples" || (of === "auto" && to - from <= LONGEST_AUTO_MILLISECONDS)) {
    const answer = await inQuestion("samples", sampleStep(asked.range, width), SAMPLE_ROWS);
    if (of === "samples" || (answer.timed ?? 0) > (answer.untimed ?? 0)) return answer;
  }
  return inQuestion("profiles", heatmapStep(asked.range, width), ROWS);
}

export function HeatmapBody() {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useSignal(0);
  const cursor = useSignal<CellPlace | undefined>(undefined);
  /** The cell in which a drag, or a choice by keyboard, began. */
  const anchor = useSignal<TimeRange | undefined>(undefined);
  const press = useRef<{ x: number; y: number; marks: boolean } | undefined>(undefined);

  useEffect(() => {
    const element = canvas.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => (width.value = element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, [width]);

  useSignalEffect(() => {
    if (width.value === 0) return;
    const asked = selection.value;
    const of = countedThings.value;
    const pixels = width.value;
    void loader.load(JSON.stringify([question.peek(), of]), (abort) => ask(asked, of, pixels, abort));
  });

  const answer = loader.state.value.data;
  const { error } = loader.state.value;
  // The columns of one answer stand on the axis of the other.
  const isStale = answer !== undefined && (loader.state.value.isStale || series.value.isStale);
  const hasCells = answer !== undefined && answer.columns.length > 0;

  useSignalEffect(() => {
    const shown = loader.state.value.data;
    void colors.value;
    void marks.value;
    if (canvas.current && shown && width.value > 0) draw(canvas.current, shown, axis.value, cursor.value, anchor.value);
  });

  const choose = (chosen: TimeRange, marksOnly: boolean): void => {
    anchor.value = undefined;
    if (marksOnly) markRange(chosen);
    else chooseRange({ from: String(chosen.from), to: String(chosen.to) });
  };
  const placeOf = (event: PointerEvent): CellPlace | undefined => {
    if (!answer || !canvas.current) return undefined;
    const box = canvas.current.getBoundingClientRect();
    const { from, to } = axis.peek();
    const rows = answer.bounds.length - 1;
    return placeWithin(answer, axis.peek(), {
      time: from + ((event.clientX - box.left) / box.width) * (to - from),
      row: rows - 1 - Math.floor(((event.clientY - box.top) / box.height) * rows),
    });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!answer) return;
    const shown = axis.peek();
    const at = placeWithin(answer, shown, cursor.peek() ?? { time: shown.to, row: 0 });
    const [columns, rows] = ARROWS[event.key] ?? [];
    const begun = anchor.peek();
    if (event.key === "Escape" && begun !== undefined) anchor.value = undefined;
    else if (event.key === "Enter" && cursor.peek()) {
      if (begun === undefined) anchor.value = cellRange(answer, at);
      else choose(enclosingRange(begun, cellRange(answer, at)), event.shiftKey);
    } else if (event.key === "Backspace") takeRangeBack();
    else if (columns !== undefined && rows !== undefined)
      cursor.value = cursor.peek() ? placeWithin(answer, shown, { time: at.time + columns * answer.step_ms, row: at.row + rows }) : at;
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const place = answer && cursor.value && placeWithin(answer, axis.value, cursor.value);
  const cell = answer && place && cellAt(answer, place.time, place.row);
  const columnOf = (time: number): number => (answer ? Math.floor(time / answer.step_ms) - Math.floor(axis.value.from / answer.step_ms) : 0);

  return (
    <>
      <div class="heatmap-legend">
        <HeatmapChooser />
        {answer && hasCells && <Scale most={mostProfiles(answer)} of={answer.of} />}
        {answer?.of === "samples" && hasCells && <span class="muted">{resolutionText(answer)}</span>}
      </div>
      <div class={`heatmap-axis muted${heightClass(answer)}`} aria-hidden="true">
        {answer && hasCells && (
          <>
            <span>{boundText(answer, answer.bounds[answer.bounds.length - 1])}</span>
            <span>{boundText(answer, answer.bounds[0])}</span>
          </>
        )}
      </div>
      <div class={`heatmap-picture${isStale ? " is-stale-body" : ""}`}>
        <canvas
          ref={canvas}
          class={`heatmap-canvas${heightClass(answer)}`}
          data-testid="heatmap-canvas"
          role="slider"
          tabIndex={0}
          aria-label={describe(answer)}
          aria-valuemin={0}
          aria-valuemax={Math.max(0, columnOf(axis.value.to - 1))}
          aria-valuenow={place ? columnOf(place.time) : 0}
          aria-valuetext={answer && cell ? cellText(answer, cell) : "no step chosen"}
          onKeyDown={onKeyDown}
          onPointerDown={(event) => {
            if (event.button !== 0) return;
            event.currentTarget.setPointerCapture(event.pointerId);
            const start = placeOf(event);
            anchor.value = answer && start && cellRange(answer, start);
            press.current = { x: event.clientX, y: event.clientY, marks: event.shiftKey };
          }}
          onPointerMove={(event) => (cursor.value = placeOf(event))}
          onPointerLeave={() => anchor.peek() === undefined && (cursor.value = undefined)}
          onPointerCancel={() => (anchor.value = undefined)}
          onPointerUp={(event) => {
            const start = anchor.peek();
            // Where it is drawn, though the picture may have moved since the pointer did.
            const end = cursor.peek();
            anchor.value = undefined;
            const pressed = press.current;
            if (!answer || !end || !start || !pressed) return;
            const [across, down] = [Math.abs(event.clientX - pressed.x), Math.abs(event.clientY - pressed.y)];
            const isDrag = across >= MINIMUM_DRAG_PIXELS || (answer.of === "samples" && down >= MINIMUM_DRAG_PIXELS);
            if (isDrag) choose(enclosingRange(start, cellRange(answer, placeWithin(answer, axis.peek(), end))), pressed.marks);
          }}
        />
        <Markers isBelow />
        {!answer && !error && <Skeleton what="the heatmap" shape="chart" />}
        {!hasCells && (answer || error) && (
          <p class="heatmap-note muted">
            {error ? besideThePicture(error) : ((answer?.of === "samples" ? answer.hint : undefined) ?? "No single profiles in this range.")}
          </p>
        )}
        {answer?.partial && <p class="heatmap-note muted">{answer.partial_reason}</p>}
        <p class="heatmap-cell" aria-hidden="true" data-testid="heatmap-cell">
          {answer && cell && cellText(answer, cell)}
          {anchor.value !== undefined && " · Enter or release chooses the range, with Shift marks it, Escape gives it up"}
        </p>
      </div>
    </>
  );
}

function heightClass(answer: HeatmapAnswer | undefined): string {
  return answer?.of === "samples" ? " is-samples" : "";
}

function resolutionText({ step_ms: step, bounds }: HeatmapAnswer): string {
  return `${formatLength(step)} across, ${formatLength(bounds[1] - bounds[0])} up`;
}

function boundText({ of, is_rate: isRate, unit, type }: HeatmapAnswer, bound: number): string {
  if (of === "samples") return bound === 0 ? "+0" : `+${formatLength(bound)}`;
  return isRate ? formatRate(bound, unit, isCpuTime(type)) : formatValue(bound, unit);
}

function cellText(answer: HeatmapAnswer, { time, low, high, count, profiles }: HeatCell): string {
  const date = answer.to - answer.from > 86400e3;
  if (answer.of === "samples") {
    const moments = `${clock(time + low, { date, milliseconds: true })} – ${clock(time + high, { milliseconds: true })}`;
    return `${moments} · ${formatCount(count)} ${count === 1 ? "sample" : "samples"}, ${formatCount(profiles)} in the column`;
  }
  const values = `${boundText(answer, low)} – ${boundText(answer, high)}`;
  return `${clock(time, { date })} · ${values} · ${formatCount(count)} of ${formatCount(profiles)} ${profiles === 1 ? "profile" : "profiles"}`;
}

function describe(answer: HeatmapAnswer | undefined): string {
  if (!answer) return "Heatmap: no data";
  const profiles = answer.columns.reduce((sum, { counts }) => sum + counts.reduce((all, count) => all + count, 0), 0);
  if (answer.of === "samples")
    return `Heatmap of ${formatCount(profiles)} samples by their times, ${resolutionText(answer)}. Arrow keys move, Enter begins and ends a range, with Shift it is marked.`;
  return `Heatmap of ${formatCount(profiles)} profiles by value, ${answer.columns.length} steps of ${answer.step_ms / 1e3} s. Arrow keys move, Enter begins and ends a range.`;
}

function HeatmapChooser() {
  return (
    <label class="heatmap-of">
      <span class="muted">of</span>
      <span class="select-frame">
        <select
          aria-label="What the heatmap counts"
          data-testid="heatmap-of"
          value={countedThings.value}
          onChange={(event) => update({ heatmapOf: event.currentTarget.value as HeatmapOf })}
        >
          {HEATMAP_CHOICES.map((choice) => (
            <option key={choice} value={choice}>
              {HEATMAP_TITLES[choice]}
            </option>
          ))}
        </select>
      </span>
    </label>
  );
}

function Scale({ most, of }: { most: number; of: HeatmapAnswer["of"] }) {
  const [one, many] = of === "samples" ? ["sample", "samples"] : ["profile", "profiles"];
  return (
    <>
      {/* First, where it shares its line with a step: behind the last one it may be alone on the next. */}
      <span class="muted">{most === 1 ? one : many}</span>
      {heatSteps(most).map(({ level, from, to }) => (
        <span key={level} title={from === to ? `${from} ${from === 1 ? one : many}` : `${from} to ${to} ${many}`}>
          <span class={`heat-swatch is-heat-${level}`} aria-hidden="true" />
          {to}
        </span>
      ))}
    </>
  );
}

function draw(canvas: HTMLCanvasElement, answer: HeatmapAnswer, { from, to }: TimeRange, cursor: CellPlace | undefined, anchor: TimeRange | undefined): void {
  const context = canvas.getContext("2d");
  const width = canvas.clientWidth;
  if (!context || !(to > from)) return;
  const ratio = window.devicePixelRatio;
  canvas.width = Math.round(width * ratio);
  const height = answer.of === "samples" ? SAMPLE_HEIGHT : HEIGHT;
  canvas.height = Math.round(height * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const { heat, chosen, cursor: outline } = colors.peek();
  const rows = answer.bounds.length - 1;
  const rowHeight = height / Math.max(1, rows);
  const most = mostProfiles(answer);
  const x = (time: number): number => ((time - from) / (to - from)) * width;
  // Columns that touch have no seams: whole device pixels.
  const snap = (value: number): number => Math.round(value * ratio) / ratio;
  for (const { time, counts } of answer.columns) {
    const left = snap(Math.max(0, x(time)));
    const right = Math.max(left + 1 / ratio, snap(x(time + answer.step_ms)));
    counts.forEach((count, row) => {
      const level = heatLevel(count, most);
      if (level === 0) return;
      context.fillStyle = heat[level - 1];
      const top = snap(height - (row + 1) * rowHeight);
      context.fillRect(left, top, right - left, snap(height - row * rowHeight) - top);
    });
  }
  context.fillStyle = chosen;
  for (const marked of marks.peek()) context.fillRect(x(marked.from), 0, Math.max(2, x(marked.to) - x(marked.from)), height);
  if (!cursor) return;
  const place = placeWithin(answer, { from, to }, cursor);
  const step = answer.step_ms;
  if (anchor !== undefined) {
    const begun = enclosingRange(anchor, cellRange(answer, place));
    for (let column = Math.floor(Math.max(begun.from, from) / step) * step; column < Math.min(begun.to, to); column += step) {
      // Of samples the range begins and ends within columns, which go from bottom to top.
      const isWithin = answer.of === "samples";
      const bottom = isWithin ? (Math.max(0, begun.from - column) / step) * height : 0;
      const top = isWithin ? (Math.min(step, begun.to - column) / step) * height : height;
      context.fillRect(x(column), height - top, x(column + step) - x(column), top - bottom);
    }
  }
  context.strokeStyle = outline;
  context.lineWidth = 1.5;
  const cellWidth = Math.max(3, x(place.time + step) - x(place.time));
  context.strokeRect(x(place.time), height - (place.row + 1) * rowHeight, cellWidth, Math.max(3, rowHeight));
}
