// Which boxes of a chart are drawn. Of boxes narrower than the least width the first stands for all in its pixels: the cost follows
// the pixels, not the samples.

import { firstBoxBehind } from "../model/chart.ts";
import { placeOfRow, type PlacedLane } from "../model/lane-rows.ts";
import type { Span } from "./camera.ts";
import type { Layout } from "./layout.ts";

export interface ChartWindow {
  /** Milliseconds from the start of the range. */
  span: Span;
  firstRow: number;
  lastRow: number;
  /** CSS pixels. */
  width: number;
  minimumWidth: number;
}

/** So many boxes at most in a picture: what it costs is what is drawn. */
const RESTING_BOXES = 12_000;
const MOVING_BOXES = 5000;

export function minimumBoxWidth(rows: number, width: number, isMoving: boolean): number {
  const budget = isMoving ? MOVING_BOXES : RESTING_BOXES;
  return Math.max(isMoving ? 2 : 1, (Math.max(1, rows) * width) / budget);
}

export function layOutChart(placed: readonly PlacedLane[], window: ChartWindow, layout: Layout): Layout {
  const { boxes, slivers } = layout;
  boxes.clear();
  slivers.clear();
  const { span, width, minimumWidth } = window;
  if (!(span.right > span.left)) return layout;
  const scale = width / (span.right - span.left);
  for (let row = window.firstRow; row <= window.lastRow; row++) {
    const place = placeOfRow(placed, row);
    if (!place || place.depth < 0) continue;
    const { start, end, node } = place.placed.lane.rows[place.depth];
    let box = firstBoxBehind(place.placed.lane.rows[place.depth], span.left);
    while (box < start.length && start[box] < span.right) {
      const x = Math.max(0, (start[box] - span.left) * scale);
      const right = Math.min(width, (end[box] - span.left) * scale);
      const boxWidth = right - x;
      boxes.push(node[box], x, Math.max(boxWidth, Math.min(minimumWidth, width - x)), row);
      if (boxWidth >= minimumWidth) {
        box++;
        continue;
      }
      // What begins within its pixels is not seen; what begins there and reaches further is.
      const until = span.left + (x + minimumWidth) / scale;
      box = Math.max(box + 1, firstBoxBehind(place.placed.lane.rows[place.depth], until));
    }
  }
  return layout;
}
