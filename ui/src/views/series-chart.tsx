// When it was spent. Dragging chooses a range for everything on the page; a double click takes the last one back.

import { computed, useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { draggedRange } from "../model/drag-range.ts";
import { isCpuTime, isGauge } from "../model/profile-type.ts";
import { axisRange, OTHER_LAYER, stackSeries, type SeriesAnswer, type StackedSeries } from "../model/series.ts";
import { isRelative, type TimeRange } from "../model/time-range.ts";
import { formatRate, formatValue } from "../model/units.ts";
import { chartOptions } from "./chart-options.ts";
import { clock } from "./clock.ts";
import { besideThePicture } from "./empty-state.tsx";
import { GroupChooser } from "./group-chooser.tsx";
import { FlagIcon } from "./icons.tsx";
import { openNotes, pointedTime } from "./notes.ts";
import { canTakeRangeBack, chooseRange, takeRangeBack } from "./range-choice.ts";
import { markRange, marks } from "./range-marks.ts";
import { range, series, service, services, view } from "./store.ts";
import { chartTheme } from "./theme.ts";

const MAXIMUM_LAYERS = 6;
const MINIMUM_DRAG_PIXELS = 4;

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
const usesUtc = computed(() => view.value.isUtc);
const groupLabel = computed(() => view.value.groupBy);
const followsNow = computed(() => isRelative(view.value.to));

const picture = computed((): Picture | undefined => {
  const answer = seriesAnswer.value;
  if (!answer) return undefined;
  // The answer on the screen may be older than the choice.
  const label = groupLabel.value;
  const isGrouped = label !== "" && answer.series.some(({ labels }) => label in labels);
  const names = isGrouped ? [] : (JSON.parse(listedNames.value) as string[]);
  const stacked = stackSeries(answer, {
    nameLabel: isGrouped ? label : "service_name",
    maximumLayers: MAXIMUM_LAYERS,
    order: names,
    range: answer,
    isLive: followsNow.value,
    isGauge: isGauge(answer.type),
  });
  const theme = chartTheme.value;
  const chosen = service.value;
  const colorOf = (name: string): string => theme.layers[names.indexOf(name)] ?? theme.other;
  if (isGrouped) {
    const layers = stacked.layers.map((layer) => ({ ...layer, name: groupName(layer.name, label) }));
    const colors = layers.map(({ name }, place) => (name === OTHER_VALUES ? theme.other : (theme.layers[place] ?? theme.other)));
    return { ...stacked, layers, answer, colors, isSingle: false };
  }
  return {
    ...stacked,
    answer,
    // Series that are not grouped have no name.
    colors: stacked.layers.map(({ name }) => colorOf(name === "" ? (chosen ?? "") : name)),
    isSingle: stacked.layers.every(({ name }) => name === ""),
  };
});

const OTHER_VALUES = "other values";

function groupName(value: string, label: string): string {
  if (value === OTHER_LAYER) return OTHER_VALUES;
  return value === "" ? `no ${label}` : value;
}

/** `children` are drawn over it. */
export function SeriesChart({ children }: { children?: ComponentChildren }) {
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<{ plot: uPlot; shape: string }>(undefined);
  const cursor = useSignal<number | undefined>(undefined);
  // A refresh in the middle of a drag would take the selection away: the new data wait for the end of it.
  const isDragging = useSignal(false);
  /** With Shift a drag marks its range. */
  const isMarking = useRef(false);

  useSignalEffect(() => {
    const element = host.current;
    const shown = picture.value;
    const theme = chartTheme.value;
    const isUtc = usesUtc.value;
    if (!element || isDragging.value) return;
    if (!shown) {
      chart.current?.plot.destroy();
      chart.current = undefined;
      cursor.value = undefined;
      return;
    }
    const { answer, stepSeconds, colors } = shown;
    // In the unit of the axis, so that its steps are round there: cores, not nanoseconds in 30 s.
    const divisor = !isGauge(answer.type) && answer.unit === "nanoseconds" ? 1e9 : 1;
    const data = [
      shown.times,
      ...shown.layers.map(({ stacked }) => stacked.map((value) => (value === null ? null : value / divisor))),
    ] as uPlot.AlignedData;
    // A new chart only where one looks different: a refresh keeps the cursor where it is.
    const shape = JSON.stringify([isUtc, answer.type, answer.unit, stepSeconds, colors, theme]);
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
      isUtc,
      isBinary: answer.unit === "bytes",
      formatAxis: (value) => formatPoint(value * divisor, answer.type, answer.unit),
      onCursor: (index) => {
        cursor.value = index;
        pointedTime.value = index === undefined ? undefined : (picture.peek()?.times[index] ?? 0) * 1e3 || undefined;
      },
      marks: () => marks.peek(),
      markColor: theme.mark,
      onSelect: (from, to, pixels) => {
        if (pixels < MINIMUM_DRAG_PIXELS) return;
        const chosen = draggedRange(from, to, stepSeconds);
        if (isMarking.current) markRange({ from: Number(chosen.from), to: Number(chosen.to) });
        else chooseRange(chosen);
      },
      onReset: takeRangeBack,
    });
    chart.current = { plot: new uPlot(options, data, element), shape };
  });

  useSignalEffect(() => {
    void marks.value;
    chart.current?.plot.redraw(false);
  });

  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() =>
      chart.current?.plot.setSize({ width: element.clientWidth, height: element.clientHeight }),
    );
    observer.observe(element);
    const startDrag = (event: MouseEvent): void => {
      isMarking.current = event.shiftKey;
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
      <div class="series-tools">
        <button
          type="button"
          class="link-button"
          title="Deploys and notes in this range, and a new one (a)"
          data-testid="open-notes"
          onClick={() => (openNotes.value = {})}
        >
          <FlagIcon /> Notes
        </button>
        <GroupChooser />
      </div>
      <div
        class="series-chart"
        ref={host}
        data-testid="series-chart"
        role="img"
        aria-label={shown ? describe(shown) : "Cost over time: no data"}
      >
        {!shown && error && <p class="series-error muted">{besideThePicture(error)}</p>}
        {!shown && !error && <div class="chart-skeleton" aria-hidden="true" />}
      </div>
      {children}
    </div>
  );
}

/** What is younger than this is on its way; what is older has stopped. */
const LATE_MILLISECONDS = 120_000;

function axisNow(): TimeRange {
  const answer = seriesAnswer.peek();
  return answer ? axisRange(answer, answer) : range.peek();
}

function Legend({ picture: { answer, times, layers, colors, isSingle, stepSeconds }, index }: { picture: Picture; index: number | undefined }) {
  if (times.length === 0) return null;
  if (index === undefined || index >= times.length) {
    const begins = axisRange(answer, answer).from > answer.from;
    const end = (times[times.length - 1] + stepSeconds) * 1e3;
    return (
      <span class="muted">
        {begins && `Data begins at ${clock(times[0] * 1e3)}. `}
        {answer.to - end > LATE_MILLISECONDS && <span class="is-worrying">Nothing since {clock(end, { date: answer.to - end > 86400e3 })}. </span>}
        <span class="series-hint">Drag to choose a range, with Shift to mark one{canTakeRangeBack.value && ", double click to go back"}</span>
      </span>
    );
  }
  return (
    <>
      <span class="legend-time">{clock(times[index] * 1e3, { date: answer.to - answer.from > 86400e3 })}</span>
      {layers.map((layer, position) => {
        const value = layer.own[index];
        if (value === null || value === 0) return null;
        return (
          <span key={layer.name} class="legend-entry">
            {!isSingle && <span class="swatch" style={{ background: colors[position] }} />}
            {!isSingle && layer.name}
            <strong>{formatPoint(value, answer.type, answer.unit)}</strong>
          </span>
        );
      })}
    </>
  );
}

function formatPoint(value: number, type: string, unit: string): string {
  return isGauge(type) ? formatValue(value, unit) : formatRate(value, unit, isCpuTime(type));
}

function describe({ answer: { from, to }, times }: Picture): string {
  return `Cost over time from ${clock(from, { date: true })} to ${clock(to, { date: true })}, ${times.length} points`;
}
