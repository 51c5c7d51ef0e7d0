// How the time series looks, in the terms of uPlot.

import uPlot from "uplot";
import { formatClock, type TimeRange } from "../model/time-range.ts";
import type { chartTheme } from "./theme.ts";

export interface ChartSettings {
  width: number;
  height: number;
  theme: typeof chartTheme.value;
  /** One a layer, from the bottom of the stack. */
  colors: readonly string[];
  /** Of the data in the chart at the moment: a chart outlives many refreshes. */
  range: () => TimeRange;
  /** Sizes: steps of the axis are powers of two. */
  isBinary: boolean;
  formatAxis: (value: number) => string;
  onCursor: (index: number | undefined) => void;
  onSelect: (fromSeconds: number, toSeconds: number, pixels: number) => void;
  onReset: () => void;
}

const POWERS_OF_TWO = Array.from({ length: 60 }, (_, exponent) => 2 ** (exponent - 4));
const SECONDS_PER_DAY = 86_400;
const FILL_OPACITY = 0.34;

export function chartOptions(settings: ChartSettings): uPlot.Options {
  const { theme } = settings;
  const isSingle = settings.colors.length === 1;
  const axis = { stroke: theme.axis, font: theme.font, grid: { stroke: theme.grid, width: 1 }, ticks: { show: false } };
  return {
    width: settings.width,
    height: settings.height,
    padding: [6, 12, 0, 0],
    legend: { show: false },
    scales: {
      x: { time: true, range: () => [settings.range().from / 1e3, settings.range().to / 1e3] },
      y: { range: (_, __, maximum) => [0, maximum > 0 ? maximum * 1.08 : 1] },
    },
    axes: [
      { ...axis, size: 24, gap: 4, space: 90, values: clockLabels, grid: { show: false } } as uPlot.Axis,
      {
        ...axis,
        size: 84,
        gap: 6,
        space: 26,
        values: (_, splits) => splits.map(settings.formatAxis),
        ...(settings.isBinary && { incrs: POWERS_OF_TWO }),
      },
    ],
    series: [
      {},
      ...settings.colors.map((stroke): uPlot.Series => ({
        stroke,
        fill: withOpacity(stroke, FILL_OPACITY),
        width: isSingle ? 1.5 : 1,
        points: { show: false },
        ...(steppedPaths && { paths: steppedPaths }),
      })),
    ],
    // Each layer is filled down to the one below it.
    bands: Array.from({ length: Math.max(0, settings.colors.length - 1) }, (_, layer) => ({
      series: [layer + 2, layer + 1] as [number, number],
    })),
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false },
      bind: {
        dblclick: () => () => {
          settings.onReset();
          return null;
        },
      },
    },
    hooks: {
      setCursor: [(chart) => settings.onCursor(chart.cursor.idx ?? undefined)],
      setSelect: [
        (chart) => {
          const { left, width } = chart.select;
          if (width === 0) return;
          settings.onSelect(chart.posToVal(left, "x"), chart.posToVal(left + width, "x"), width);
          chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
}

/** Seconds only where ticks are closer than a minute, the date only where they are a day apart. */
function clockLabels(_: uPlot, splits: number[], __: number, ___: number, increment: number): string[] {
  const isDaily = increment >= SECONDS_PER_DAY;
  return splits.map((seconds) => {
    const text = formatClock(seconds * 1e3, { seconds: increment < 60, date: isDaily });
    return isDaily ? text.slice(0, text.indexOf(" ")) : text;
  });
}

function withOpacity(color: string, opacity: number): string {
  return `color-mix(in oklab, ${color} ${opacity * 100}%, transparent)`;
}

/** A point stands for its whole step: a slope between two would claim more than was measured. */
const steppedPaths = uPlot.paths.stepped?.({ align: 1 });
