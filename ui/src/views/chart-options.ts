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
  isUtc: boolean;
  /** Sizes: steps of the axis are powers of two. */
  isBinary: boolean;
  formatAxis: (value: number) => string;
  onCursor: (index: number | undefined) => void;
  /** Ranges that are marked for a comparison, and their colour. */
  marks: () => readonly TimeRange[];
  markColor: string;
  onSelect: (fromSeconds: number, toSeconds: number, pixels: number) => void;
  onReset: () => void;
}

const POWERS_OF_TWO = Array.from({ length: 60 }, (_, exponent) => 2 ** (exponent - 4));
const SECONDS_PER_DAY = 86_400;
const FILL_OPACITY = 0.34;
/** On the right, half of the last time: `.heatmap-picture` ends at the same place. */
const PADDING_RIGHT = 18;
/** Of digits and colons in the font of the axes, in pixels. */
const CLOCK_CHARACTER_WIDTH = 6.8;

export function chartOptions(settings: ChartSettings): uPlot.Options {
  const { theme } = settings;
  const isSingle = settings.colors.length === 1;
  const axis = { stroke: theme.axis, font: theme.font, grid: { stroke: theme.grid, width: 1 }, ticks: { show: false } };
  return {
    width: settings.width,
    height: settings.height,
    padding: [6, PADDING_RIGHT, 0, 0],
    legend: { show: false },
    // Where the ticks of days and hours stand.
    tzDate: (seconds) => (settings.isUtc ? uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC") : new Date(seconds * 1e3)),
    scales: {
      x: { time: true, range: () => [settings.range().from / 1e3, settings.range().to / 1e3] },
      y: { range: (_, __, maximum) => [0, maximum > 0 ? maximum * 1.08 : 1] },
    },
    axes: [
      { ...axis, size: 24, gap: 4, space: 90, values: clockLabels(settings.isUtc), grid: { show: false } } as uPlot.Axis,
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
      drawAxes: [
        (chart) => {
          const { ctx, bbox } = chart;
          ctx.save();
          ctx.fillStyle = settings.markColor;
          for (const { from, to } of settings.marks()) {
            const left = Math.max(bbox.left, chart.valToPos(from / 1e3, "x", true));
            const right = Math.min(bbox.left + bbox.width, chart.valToPos(to / 1e3, "x", true));
            if (right >= left) ctx.fillRect(left, bbox.top, Math.max(2, right - left), bbox.height);
          }
          ctx.restore();
        },
      ],
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
function clockLabels(isUtc: boolean) {
  return (chart: uPlot, splits: number[], _: number, __: number, increment: number): string[] => {
    const isDaily = increment >= SECONDS_PER_DAY;
    const width = chart.bbox.width / uPlot.pxRatio;
    return splits.map((seconds) => {
      const clock = formatClock(seconds * 1e3, { seconds: increment < 60, milliseconds: increment < 1, date: isDaily, isUtc });
      const text = isDaily ? clock.slice(0, clock.indexOf(" ")) : clock;
      // A time that would stand in the labels on the left or be cut off on the right says less than none.
      const half = (text.length * CLOCK_CHARACTER_WIDTH) / 2;
      const center = chart.valToPos(seconds, "x");
      return center - half < -PADDING_RIGHT / 2 || center + half > width + PADDING_RIGHT ? "" : text;
    });
  };
}

function withOpacity(color: string, opacity: number): string {
  return `color-mix(in oklab, ${color} ${opacity * 100}%, transparent)`;
}

/** A point stands for its whole step: a slope between two would claim more than was measured. */
const steppedPaths = uPlot.paths.stepped?.({ align: 1 });
