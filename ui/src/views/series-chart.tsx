// When it was spent. Dragging chooses a range for everything on the page; a double click takes the last one back.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { isCpuTime, isGauge } from "../model/profile-type.ts";
import { axisRange, stackSeries, type SeriesAnswer, type StackedSeries } from "../model/series.ts";
import { formatClock, isRelative, type TimeRange } from "../model/time-range.ts";
import { formatRate, formatValue } from "../model/units.ts";
import { chartOptions } from "./chart-options.ts";
import { range, series, service, update, view } from "./store.ts";
import { chartTheme } from "./theme.ts";

const MAXIMUM_LAYERS = 6;
const MINIMUM_DRAG_PIXELS = 4;

export function SeriesChart() {
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>(undefined);
  const cursor = useSignal<number | undefined>(undefined);
  // A refresh in the middle of a drag would take the selection away: the new chart waits for the end of it.
  const isDragging = useSignal(false);

  const stacked = series.value.data ? stackedNow(series.value.data) : undefined;

  useSignalEffect(() => {
    const element = host.current;
    const answer = series.value.data;
    const theme = chartTheme.value;
    if (!element || !answer || isDragging.value) return;
    const layers = stackedNow(answer);
    // In the unit of the axis, so that its steps are round there: cores, not nanoseconds in 30 s.
    const divisor = isGauge(answer.type) ? 1 : layers.stepSeconds * (answer.unit === "nanoseconds" ? 1e9 : 1);
    chart.current?.destroy();
    chart.current = new uPlot(
      chartOptions({
        width: element.clientWidth,
        height: element.clientHeight,
        theme,
        layerCount: layers.layers.length,
        hasOther: layers.layers.length > MAXIMUM_LAYERS,
        isSingle: service.peek() !== undefined,
        range: axisRange(answer, range.peek()),
        isBinary: answer.unit === "bytes",
        formatAxis: (value) => formatPoint(value * divisor, answer.type, answer.unit, layers.stepSeconds),
        onCursor: (index) => (cursor.value = index),
        onSelect: (from, to, pixels) => pixels >= MINIMUM_DRAG_PIXELS && selectRange(from, to),
        onReset: resetRange,
      }),
      [
        layers.times,
        ...layers.layers.map(({ stacked: values }) => values.map((value) => (value === null ? null : value / divisor))),
      ] as uPlot.AlignedData,
      element,
    );
  });

  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() =>
      chart.current?.setSize({ width: element.clientWidth, height: element.clientHeight }),
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
      chart.current?.destroy();
    };
  }, [isDragging]);

  return (
    <div class="series">
      <div class="series-legend" aria-hidden="true">
        {stacked && <Legend stacked={stacked} index={cursor.value} />}
      </div>
      <div
        class="series-chart"
        ref={host}
        data-testid="series-chart"
        role="img"
        aria-label={describe(stacked, range.value)}
      />
    </div>
  );
}

function stackedNow(answer: SeriesAnswer): StackedSeries {
  return stackSeries(answer, {
    nameLabel: "service_name",
    maximumLayers: MAXIMUM_LAYERS,
    range: range.peek(),
    isLive: isRelative(view.peek().to),
    isGauge: isGauge(answer.type),
  });
}

function Legend({ stacked, index }: { stacked: StackedSeries; index: number | undefined }) {
  const answer = series.value.data;
  const theme = chartTheme.value;
  if (!answer || stacked.times.length === 0) return null;
  const isSingle = service.value !== undefined;
  if (index === undefined) {
    const begins = axisRange(answer, range.value).from > range.value.from;
    return (
      <span class="muted">
        {begins && `Data begins at ${formatClock(stacked.times[0] * 1e3)}. `}
        {!isSingle && "Drag to choose a range, double click to go back"}
      </span>
    );
  }
  const time = stacked.times[index];
  return (
    <>
      <span class="legend-time">{formatClock(time * 1e3, { date: range.value.to - range.value.from > 86400e3 })}</span>
      {stacked.layers.map((layer, position) => {
        const value = layer.own[index];
        if (value === null || value === 0) return null;
        return (
          <span key={layer.name} class="legend-entry">
            {!isSingle && <span class="swatch" style={{ background: theme.layers[position] ?? theme.other }} />}
            {!isSingle && layer.name}
            <strong>{formatPoint(value, answer.type, answer.unit, stacked.stepSeconds)}</strong>
          </span>
        );
      })}
    </>
  );
}

function formatPoint(value: number, type: string, unit: string, stepSeconds: number): string {
  return isGauge(type) ? formatValue(value, unit) : formatRate(value, unit, stepSeconds, isCpuTime(type));
}

/** The range before the first drag, for the way back. */
let beforeDrag: { from: string; to: string } | undefined;

function selectRange(from: number, to: number): void {
  beforeDrag ??= { from: view.peek().from, to: view.peek().to };
  update({ from: String(Math.round(from * 1e3)), to: String(Math.round(to * 1e3)) });
}

function resetRange(): void {
  update(beforeDrag ?? { from: "now-1h", to: "now" });
  beforeDrag = undefined;
}

function describe(stacked: StackedSeries | undefined, { from, to }: TimeRange): string {
  const span = `from ${formatClock(from, { date: true })} to ${formatClock(to, { date: true })}`;
  return stacked ? `Cost over time ${span}, ${stacked.times.length} points` : `Cost over time ${span}`;
}
