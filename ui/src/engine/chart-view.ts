// The chart on the page: the canvases of a flame graph, with time across and lanes below each other.

import type { Chart } from "../model/chart.ts";
import { boxAt, firstBoxBehind } from "../model/chart.ts";
import { NONE } from "../model/flame-tree.ts";
import { placeOfRow, rowCount, rowOfDepth, type PlacedLane } from "../model/lane-rows.ts";
import type { ColorBy } from "../state/schema.ts";
import { Camera, type Span } from "./camera.ts";
import { layOutChart, minimumBoxWidth } from "./chart-layout.ts";
import { FrameColors, type FlameTheme } from "./colors.ts";
import { emptyLayout } from "./layout.ts";
import { paint, paintOutlines, rowAt, rowTop, ROW_HEIGHT, type Outline, type Scene } from "./painter.ts";
import type { EnginePerf } from "./perf.ts";
import { Redraw } from "./redraw.ts";
import { Stage, type FlameElements } from "./stage.ts";
import type { TextFitter } from "./text.ts";
import { moveByWheel } from "./wheel.ts";

/** A box by its place: lane among those shown, row in it, position in the row. */
export interface BoxPlace {
  placed: PlacedLane;
  depth: number;
  box: number;
}

export interface ChartListener {
  hovered(place: BoxPlace | undefined, clientX: number, clientY: number): void;
  selected(place: BoxPlace | undefined): void;
  /** Somebody wants the time of this box for the whole page. */
  chosen(place: BoxPlace): void;
  /** What is seen now, milliseconds from the start of the range, and from which pixel on. */
  moved(span: Span, scrollTop: number): void;
}

export interface VisibleChartBox {
  lane: string;
  name: string;
  x: number;
  y: number;
  w: number;
  h: number;
}

const DRAG_STARTS_AT_PIXELS = 4;
const ZOOM_STEP = 0.5;
const PAN_STEP = 0.2;

export class ChartView {
  readonly #stage: Stage;
  readonly #listener: ChartListener;
  readonly #perf: EnginePerf;
  readonly #layout = emptyLayout();
  readonly #redraw = new Redraw(() => this.#drawNow());
  readonly #camera = new Camera({ left: 0, right: 0 });
  #chart: Chart | undefined;
  /** Unix milliseconds of its start. */
  #from = 0;
  #placed: readonly PlacedLane[] = [];
  #theme: FlameTheme;
  #fitter: TextFitter;
  #colors: FrameColors | undefined;
  #colorBy: ColorBy = "package";
  #matched: Uint8Array | undefined;
  #scene: Scene | undefined;
  #hovered: BoxPlace | undefined;
  #selected: BoxPlace | undefined;
  #drag: { x: number; panned: boolean } | undefined;

  constructor(elements: FlameElements, theme: FlameTheme, perf: EnginePerf, listener: ChartListener) {
    this.#theme = theme;
    this.#perf = perf;
    this.#listener = listener;
    this.#stage = new Stage(elements, () => {
      this.#makeRoom();
      this.#drawNow();
    });
    this.#fitter = this.#stage.fitterFor(this.#theme.font);
    this.#listen();
  }

  destroy(): void {
    this.#stage.destroy();
    this.#redraw.settle();
  }

  /** Shows a chart of a range, unix milliseconds. What was zoomed to stays in sight while it is in the range. */
  setChart(chart: Chart, from: number, to: number): void {
    const shift = this.#from - from;
    const before = this.#camera.isWhole ? undefined : this.#camera.target;
    this.#chart = chart;
    this.#from = from;
    this.#colors = new FrameColors(chart.tree.frames, this.#colorBy, this.#theme.hues.length / 2);
    const whole = { left: 0, right: to - from };
    const kept = before && { left: before.left + shift, right: before.right + shift };
    const isInside = kept && kept.left >= 0 && kept.right <= whole.right;
    this.#camera.reset(whole, isInside ? kept : whole);
    this.#select(undefined);
    this.#setHovered(undefined, 0, 0);
    this.#redraw.soon();
  }

  setLanes(placed: readonly PlacedLane[]): void {
    this.#placed = placed;
    this.#hovered = undefined;
    const selected = this.#selected;
    const kept = selected && placed.find(({ lane }) => lane === selected.placed.lane);
    const isShown = selected && kept && selected.depth >= kept.first && selected.depth < kept.first + kept.depth;
    this.#selected = isShown ? { ...selected, placed: kept } : undefined;
    this.#makeRoom();
    this.#redraw.soon();
  }

  setTheme(theme: FlameTheme): void {
    this.#theme = theme;
    this.#fitter = this.#stage.fitterFor(this.#theme.font);
    this.#redraw.soon();
  }

  setColorBy(colorBy: ColorBy): void {
    this.#colorBy = colorBy;
    if (this.#chart) this.#colors = new FrameColors(this.#chart.tree.frames, colorBy, this.#theme.hues.length / 2);
    this.#redraw.soon();
  }

  /** One flag a frame of the chart's tree. */
  setMatches(matched: Uint8Array | undefined): void {
    this.#matched = matched;
    this.#redraw.soon();
  }

  get isWhole(): boolean {
    return this.#camera.isWhole;
  }

  /** Half or twice the time, around the middle of what is seen or around the selection. */
  zoom(direction: 1 | -1): void {
    const { left, right } = this.#camera.target;
    const place = this.#selected;
    const row = place && place.placed.lane.rows[place.depth];
    const middle = row && place ? (row.start[place.box] + row.end[place.box]) / 2 : (left + right) / 2;
    const anchor = Math.max(0, Math.min(1, (middle - left) / (right - left)));
    this.#camera.zoomAround(anchor, direction === 1 ? ZOOM_STEP : 1 / ZOOM_STEP, performance.now());
    this.#redraw.stayBusy();
  }

  pan(direction: 1 | -1): void {
    this.#camera.panBy(direction * PAN_STEP, performance.now());
    this.#redraw.stayBusy();
  }

  showWhole(): void {
    this.#camera.moveTo(this.#camera.whole, performance.now(), false);
    this.#redraw.stayBusy();
  }

  /** To the next box in its row, or to the row above or below it at the same time. */
  move(across: -1 | 0 | 1, down: -1 | 0 | 1): void {
    const at = this.#selected;
    if (!at) return this.#selectFirst();
    const row = at.placed.lane.rows[at.depth];
    if (across !== 0) {
      const box = at.box + across;
      if (box >= 0 && box < row.start.length) this.#reveal({ ...at, box });
      return;
    }
    const middle = (row.start[at.box] + row.end[at.box]) / 2;
    for (let next = rowOfDepth(at.placed, at.depth) + down; next >= 0 && next < rowCount(this.#placed); next += down) {
      const place = placeOfRow(this.#placed, next);
      if (!place || place.depth === NONE) continue;
      const near = nearestBox(place.placed, place.depth, middle);
      if (near !== NONE) return this.#reveal({ ...place, box: near });
    }
  }

  chooseSelected(): void {
    if (this.#selected) this.#listener.chosen(this.#selected);
  }

  /** The boxes on the screen, in CSS pixels from the corner of the canvas: what tests look at. */
  visibleBoxes(): VisibleChartBox[] {
    const scene = this.#scene;
    if (!scene) return [];
    const { boxes } = scene.layout;
    return Array.from({ length: boxes.length }, (_, index) => ({
      lane: placeOfRow(this.#placed, boxes.row[index])?.placed.lane.title ?? "",
      name: scene.tree.nameOf(boxes.node[index]),
      x: boxes.x[index],
      y: rowTop(boxes.row[index], scene),
      w: boxes.width[index],
      h: ROW_HEIGHT - 1,
    }));
  }

  #selectFirst(): void {
    const { left } = this.#camera.target;
    for (const placed of this.#placed) {
      const box = placed.depth > 0 ? nearestBox(placed, placed.first, left) : NONE;
      if (box !== NONE) return this.#reveal({ placed, depth: placed.first, box });
    }
  }

  #reveal(place: BoxPlace): void {
    const { start, end } = place.placed.lane.rows[place.depth];
    const { left, right } = this.#camera.target;
    const middle = (start[place.box] + end[place.box]) / 2;
    if (middle < left || middle > right) this.#camera.panBy((middle - left) / (right - left) - 0.5, performance.now());
    const top = rowOfDepth(place.placed, place.depth) * ROW_HEIGHT;
    const scroll = this.#stage.scrollFromRoot;
    if (top < scroll + ROW_HEIGHT) this.#stage.scrollTo(Math.max(0, top - 2 * ROW_HEIGHT), false);
    else if (top + ROW_HEIGHT > scroll + this.#stage.height) this.#stage.scrollTo(top + 2 * ROW_HEIGHT - this.#stage.height, false);
    this.#select(place);
    this.#redraw.stayBusy();
  }

  #select(place: BoxPlace | undefined): void {
    this.#selected = place;
    this.#paintOutlines();
    this.#listener.selected(place);
  }

  #placeAt(clientX: number, clientY: number): BoxPlace | undefined {
    const scene = this.#scene;
    if (!scene || this.#stage.width === 0) return undefined;
    const startedAt = performance.now();
    const origin = this.#stage.origin;
    const { left, right } = this.#camera.at(startedAt);
    const time = left + ((clientX - origin.x) * (right - left)) / this.#stage.width;
    const place = placeOfRow(this.#placed, rowAt(clientY - origin.y, scene));
    const box = place && place.depth !== NONE ? boxAt(place.placed.lane.rows[place.depth], time) : NONE;
    this.#perf.hit(performance.now() - startedAt);
    return place && box !== NONE ? { ...place, box } : undefined;
  }

  #makeRoom(): void {
    this.#stage.makeRoom(rowCount(this.#placed) * ROW_HEIGHT + 4);
  }

  // === drawing ===

  #drawNow(): void {
    this.#redraw.settle();
    const chart = this.#chart;
    const colors = this.#colors;
    if (!chart || !colors || this.#stage.width === 0) return;
    const now = performance.now();
    const span = this.#camera.at(now);
    const isMoving = this.#camera.isMoving || this.#redraw.isBusy(now);
    const scroll = this.#stage.scrollFromRoot;
    const firstRow = Math.floor(scroll / ROW_HEIGHT);
    const lastRow = Math.ceil((scroll + this.#stage.height) / ROW_HEIGHT);
    const { width, height, pixelRatio } = this.#stage;
    const minimumWidth = minimumBoxWidth(lastRow - firstRow, width, isMoving);
    const layout = layOutChart(this.#placed, { span, firstRow, lastRow, width, minimumWidth }, this.#layout);
    this.#scene = {
      tree: chart.tree,
      layout,
      colors,
      nodeColors: undefined,
      theme: this.#theme,
      fitter: this.#fitter,
      width,
      height,
      pixelRatio,
      orientation: "icicle",
      scroll,
      zoomRow: 0,
      matched: this.#matched,
    };
    paint(this.#stage.picture, this.#scene);
    this.#paintOutlines();
    this.#perf.draw({ milliseconds: performance.now() - now, boxes: layout.boxes.length, moving: isMoving });
    this.#listener.moved(span, scroll);
    if (isMoving) this.#redraw.soon();
  }

  #paintOutlines(): void {
    const scene = this.#scene;
    if (!scene) return;
    const { left, right } = this.#camera.at(performance.now());
    const scale = this.#stage.width / (right - left);
    const outlines: Outline[] = [];
    for (const [place, color] of [
      [this.#hovered, this.#theme.outlineHover],
      [this.#selected, this.#theme.outlineSelected],
    ] as const) {
      const row = place?.placed.lane.rows[place.depth];
      if (!place || !row) continue;
      const x = Math.max(0, (row.start[place.box] - left) * scale);
      const end = Math.min(this.#stage.width, Math.max((row.end[place.box] - left) * scale, x + 4));
      if (end > 0 && x < this.#stage.width)
        outlines.push({ x, width: end - x, row: rowOfDepth(place.placed, place.depth), color });
    }
    paintOutlines(this.#stage.outlines, scene, outlines);
  }

  // === pointer and wheel ===

  #listen(): void {
    const { scroller } = this.#stage;
    this.#stage.on("scroll", () => this.#redraw.stayBusy());
    this.#stage.on("pointermove", (event) => this.#pointerMoved(event));
    this.#stage.on("pointerleave", () => this.#setHovered(undefined, 0, 0));
    this.#stage.on("pointerdown", (event) => {
      // Not on the scrollbar, and not on the name of a lane, which is a button.
      const isOnName = event.target instanceof Element && event.target.closest("button") !== null;
      if (event.button !== 0 || event.target === scroller || isOnName) return;
      this.#drag = { x: event.clientX, panned: false };
      scroller.setPointerCapture(event.pointerId);
    });
    this.#stage.on("pointerup", (event) => this.#pointerUp(event));
    this.#stage.on("pointercancel", () => (this.#drag = undefined));
    this.#stage.on("wheel", (event) => moveByWheel(event, this.#camera, this.#stage) && this.#redraw.stayBusy(), false);
  }

  #pointerMoved(event: PointerEvent): void {
    const startedAt = performance.now();
    const drag = this.#drag;
    if (drag) {
      const distance = event.clientX - drag.x;
      if (!drag.panned && Math.abs(distance) < DRAG_STARTS_AT_PIXELS) return;
      drag.panned = true;
      drag.x = event.clientX;
      this.#camera.panBy(-distance / this.#stage.width, startedAt);
      this.#setHovered(undefined, 0, 0);
      this.#redraw.stayBusy();
      return;
    }
    this.#setHovered(this.#placeAt(event.clientX, event.clientY), event.clientX, event.clientY);
    this.#perf.hover(performance.now() - startedAt);
  }

  #pointerUp(event: PointerEvent): void {
    const drag = this.#drag;
    this.#drag = undefined;
    if (!drag || drag.panned || event.button !== 0) return;
    const place = this.#placeAt(event.clientX, event.clientY);
    this.#select(place);
    if (place) this.#listener.chosen(place);
  }

  #setHovered(place: BoxPlace | undefined, clientX: number, clientY: number): void {
    const before = this.#hovered;
    this.#hovered = place;
    const isSame = before?.placed === place?.placed && before?.depth === place?.depth && before?.box === place?.box;
    if (!isSame) this.#paintOutlines();
    if (!isSame || place) this.#listener.hovered(place, clientX, clientY);
  }
}

/** The box at a time, or the one that begins next, or the last. */
function nearestBox(placed: PlacedLane, depth: number, time: number): number {
  const row = placed.lane.rows[depth];
  if (!row || row.start.length === 0) return NONE;
  return Math.min(firstBoxBehind(row, time), row.start.length - 1);
}
