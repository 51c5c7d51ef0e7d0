// When it was spent. Dragging chooses a range for everything on the page; a double click takes the last one back.

import { computed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { draggedRange, DragHistory, type RangeEnds } from "../model/drag-range.ts";
import { isCpuTime, isGauge } from "../model/profile-type.ts";
import { axisRange, stackSeries, type SeriesAnswer, type StackedSeries } from "../model/series.ts";
import { formatClock, isRelative, type TimeRange } from "../model/time-range.ts";
import { formatRate, formatValue } from "../model/units.ts";
import { chartOptions } from "./chart-options.ts";
import { range, series, service, services, update, view } from "./store.ts";
import { chartTheme } from "./theme.ts";

const MAXIMUM_LAYERS = 6;
const MINIMUM_DRAG_PIXELS = 4;
const dragHistory = new DragHistory();

/** What is in the chart: the layers of one answer, worked out once for chart and legend. */
interface Picture extends StackedSeries {
  answer: SeriesAnswer;
  /** One a layer. */
  colors: string[];
  isSingle: boolean;
}

const seriesAnswer = computed(() => series.value.data);
/** As text, so that a refresh that changes only the costs changes nothing here. */
const listedNames = computed(() => JSON.stringify(services.value.data?.services.map(({ service: name }) => name) ?? []));
const followsNow = computed(() => isRelative(view.value.to));

const picture = computed((): Picture | undefined => {
  const answer = seriesAnswer.value;
  if (!answer) return undefined;
  const names = JSON.parse(listedNames.value) as string[];
  const stacked = stackSeries(answer, {
    nameLabel: "service_name",
    maximumLayers: MAXIMUM_LAYERS,
    order: names,
    range: answer,
    isLive: followsNow.value,
    isGauge: isGauge(answer.type),
  });
  const theme = chartTheme.value;
  const chosen = service.value;
  const colorOf = (name: string): string => theme.layers[names.indexOf(name)] ?? theme.other;
  return {
    ...stacked,
    answer,
    // Series that are not grouped have no name.
    colors: stacked.layers.map(({ name }) => colorOf(name === "" ? (chosen ?? "") : name)),
    isSingle: stacked.layers.every(({ name }) => name === ""),
  };
});

export function SeriesChart() {
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<{ plot: uPlot; shape: string }>(undefined);
  const cursor = useSignal<number | undefined>(undefined);
  // A refresh in the middle of a drag would take the selection away: the new data wait for the end of it.
  const isDragging = useSignal(false);

  useSignalEffect(() => {
    const element = host.current;
    const shown = picture.value;
    const theme = chartTheme.value;
    if (!element || isDragging.value) return;
    if (!shown) {
      chart.current?.plot.destroy();
      chart.current = undefined;
      cursor.value = undefined;
      return;
    }
    const { answer, stepSeconds, colors } = shown;
    // In the unit of the axis, so that its steps are round there: cores, not nanoseconds in 30 s.
    const divisor = isGauge(answer.type) ? 1 : stepSeconds * (answer.unit === "nanoseconds" ? 1e9 : 1);
    const data = [
      shown.times,
      ...shown.layers.map(({ stacked }) => stacked.map((value) => (value === null ? null : value / divisor))),
    ] as uPlot.AlignedData;
    // A new chart only where one looks different: a refresh keeps the cursor where it is.
    const shape = JSON.stringify([answer.type, answer.unit, stepSeconds, colors, theme]);
    if (chart.current?.shape === shape) {
      chart.current.plot.setData(data);
      return;
    }
    chart.current?.plot.destroy();
    const options = chartOptions({
      width: element.clientWidth,
      height: element.clientHeight,
      theme,
      colors,
      range: axisNow,
      isBinary: answer.unit === "bytes",
      formatAxis: (value) => formatPoint(value * divisor, answer.type, answer.unit, stepSeconds),
      onCursor: (index) => (cursor.value = index),
      onSelect: (from, to, pixels) => pixels >= MINIMUM_DRAG_PIXELS && selectRange(draggedRange(from, to, stepSeconds)),
      onReset: resetRange,
    });
    chart.current = { plot: new uPlot(options, data, element), shape };
  });

  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() =>
      chart.current?.plot.setSize({ width: element.clientWidth, height: element.clientHeight }),
    );
    observer.observe(element);
    const startDrag = (): void => {
      isDragging.value = true;
    };
    const endDrag = (): void => {
      isDragging.value = false;
    };
    element.addEventListener("mousedown", startDrag);
    // Not pointerup: that comes before the mouseup in which the chart reports the selection.
    window.addEventListener("mouseup", endDrag);
    return () => {
      element.removeEventListener("mousedown", startDrag);
      window.removeEventListener("mouseup", endDrag);
      observer.disconnect();
      chart.current?.plot.destroy();
      chart.current = undefined;
    };
  }, [isDragging]);

  const shown = picture.value;
  const { error } = series.value;
  return (
    <div class="series">
      <div class="series-legend" aria-hidden="true">
        {shown && <Legend picture={shown} index={cursor.value} />}
      </div>
      <div
        class="series-chart"
        ref={host}
        data-testid="series-chart"
        role="img"
        aria-label={shown ? describe(shown) : "Cost over time: no data"}
      >
        {!shown && error && <p class="series-error muted">{error.message}</p>}
      </div>
    </div>
  );
}

function axisNow(): TimeRange {
  const answer = seriesAnswer.peek();
  return answer ? axisRange(answer, answer) : range.peek();
}

function Legend({ picture: { answer, times, layers, colors, isSingle, stepSeconds }, index }: { picture: Picture; index: number | undefined }) {
  if (times.length === 0) return null;
  if (index === undefined || index >= times.length) {
    const begins = axisRange(answer, answer).from > answer.from;
    return (
      <span class="muted">
        {begins && `Data begins at ${formatClock(times[0] * 1e3)}. `}
        Drag to choose a range{dragHistory.canGoBack(view.value) && ", double click to go back"}
      </span>
    );
  }
  return (
    <>
      <span class="legend-time">{formatClock(times[index] * 1e3, { date: answer.to - answer.from > 86400e3 })}</span>
      {layers.map((layer, position) => {
        const value = layer.own[index];
        if (value === null || value === 0) return null;
        return (
          <span key={layer.name} class="legend-entry">
            {!isSingle && <span class="swatch" style={{ background: colors[position] }} />}
            {!isSingle && layer.name}
            <strong>{formatPoint(value, answer.type, answer.unit, stepSeconds)}</strong>
          </span>
        );
      })}
    </>
  );
}

function formatPoint(value: number, type: string, unit: string, stepSeconds: number): string {
  return isGauge(type) ? formatValue(value, unit) : formatRate(value, unit, stepSeconds, isCpuTime(type));
}

function selectRange(chosen: RangeEnds): void {
  dragHistory.choose(view.peek(), chosen);
  update(chosen);
}

function resetRange(): void {
  const before = dragHistory.back(view.peek());
  if (before) update(before);
}

function describe({ answer: { from, to }, times }: Picture): string {
  return `Cost over time from ${formatClock(from, { date: true })} to ${formatClock(to, { date: true })}, ${times.length} points`;
}
