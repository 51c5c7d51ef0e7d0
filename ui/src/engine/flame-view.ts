// The flame graph on the page: two canvases over a scrolling element, and what pointer, wheel and keyboard do to them. Knows the
// tree, not where it comes from; tells its host what is hovered, selected and zoomed.

import { findPath, pathHash } from "../model/path-hash.ts";
import { NONE, ROOT, type FlameTree } from "../model/flame-tree.ts";
import type { ColorBy, Orientation } from "../state/schema.ts";
import { Camera } from "./camera.ts";
import { FrameColors, type FlameTheme, type NodeColors } from "./colors.ts";
import { emptyLayout, layOut } from "./layout.ts";
import { step, type Move } from "./navigation.ts";
import { paint, paintOutlines, rowAt, rowTop, ROW_HEIGHT, type Outline, type Scene } from "./painter.ts";
import type { EnginePerf } from "./perf.ts";
import { Redraw } from "./redraw.ts";
import { Stage, type FlameElements } from "./stage.ts";
import type { TextFitter } from "./text.ts";
import { moveByWheel } from "./wheel.ts";

export interface FlameListener {
  /** `NONE` when the pointer left; coordinates are those of the page. */
  hovered(node: number, clientX: number, clientY: number): void;
  selected(node: number): void;
  zoomed(node: number): void;
  /** The first picture with every box at rest is on the canvas. */
  drewFirst(): void;
}

export interface VisibleBox {
  node: number;
  name: string;
  x: number;
  y: number;
  w: number;
  h: number;
  total: number;
}

/** While moving, narrower boxes are merged: drawn boxes are what a frame costs. */
const MOVING_MINIMUM_WIDTH = 3;
const RESTING_MINIMUM_WIDTH = 1;
/** Rows of ancestors that stay in sight above a zoomed node. */
const ANCESTOR_ROWS = 3;
/** Browsers take a few hundred milliseconds for a smooth scroll; there is no event to rely on. */
const LONGEST_SMOOTH_SCROLL_MS = 1000;
const DRAG_STARTS_AT_PIXELS = 4;

export class FlameView {
  readonly #stage: Stage;
  readonly #listener: FlameListener;
  readonly #perf: EnginePerf;
  readonly #layout = emptyLayout();
  readonly #redraw = new Redraw(() => this.#drawNow());
  readonly #camera = new Camera({ left: 0, right: 0 });
  #tree: FlameTree | undefined;
  #theme: FlameTheme;
  #fitter: TextFitter;
  #colors: FrameColors | undefined;
  #nodeColors: NodeColors | undefined;
  #colorBy: ColorBy = "package";
  #matched: Uint8Array | undefined;
  #linkedFrames: ReadonlySet<number> = new Set();
  #zoomNode = ROOT;
  /** What the host asked for, whether or not the tree has it. */
  #zoomHash = "";
  #smoothScrollEnds = 0;
  #selectedNode = NONE;
  #hoveredNode = NONE;
  #scene: Scene | undefined;
  #drewFirst = false;
  /** Where the pointer was last, while it is over the picture. */
  #pointer: { x: number; y: number } | undefined;
  /** The picture below a resting pointer was exchanged or moved: what is below it now? */
  #rehover = false;
  #drag: { x: number; panned: boolean } | undefined;

  constructor(elements: FlameElements, theme: FlameTheme, perf: EnginePerf, listener: FlameListener) {
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

  /** Shows a tree. Zoom and selection are kept where the new tree has the same paths. */
  setTree(tree: FlameTree, zoomHash: string): void {
    const before = this.#tree;
    const selectedHash = before && this.#selectedNode !== NONE ? pathHash(before, this.#selectedNode) : "";
    const zoomNode = Math.max(ROOT, findPath(tree, zoomHash));
    // The hash and not the node: a path that this range lacks leaves the reader where the last one lacked it.
    const isSameZoom =
      before !== undefined && zoomHash === this.#zoomHash && (zoomNode === ROOT) === (this.#zoomNode === ROOT);
    const freeSpan = isSameZoom && !this.#showsZoomNode ? this.#camera.target : undefined;
    const wholeBefore = this.#camera.whole.right;
    this.#tree = tree;
    this.#colors = new FrameColors(tree.frames, this.#colorBy, this.#theme.hues.length / 2);
    this.#matched = undefined;
    this.#linkedFrames = new Set();
    this.#hoveredNode = NONE;
    this.#selectedNode = selectedHash === "" ? NONE : findPath(tree, selectedHash);
    this.#zoomNode = zoomNode;
    this.#zoomHash = zoomHash;
    // A span chosen by wheel has no path: it keeps its place in the whole.
    const growth = wholeBefore > 0 ? tree.rootTotal / wholeBefore : 1;
    const span = freeSpan
      ? { left: freeSpan.left * growth, right: freeSpan.right * growth }
      : this.#spanOf(this.#zoomNode);
    this.#camera.reset({ left: 0, right: tree.rootTotal }, span);
    this.#makeRoom();
    // New content ends a smooth scroll wherever it is: go where it was going.
    const wasScrolling = performance.now() < this.#smoothScrollEnds;
    if (!isSameZoom || wasScrolling) this.#scrollToZoom(false);
    this.#rehover = true;
    this.#redraw.soon();
  }

  setTheme(theme: FlameTheme): void {
    this.#theme = theme;
    this.#fitter = this.#stage.fitterFor(this.#theme.font);
    this.#redraw.soon();
  }

  setColorBy(colorBy: ColorBy): void {
    if (colorBy === this.#colorBy) return;
    this.#colorBy = colorBy;
    if (this.#tree) this.#colors = new FrameColors(this.#tree.frames, colorBy, this.#theme.hues.length / 2);
    this.#redraw.soon();
  }

  /** Of the nodes of this tree; `undefined` colours by frame. */
  setNodeColors(nodeColors: NodeColors | undefined): void {
    this.#nodeColors = nodeColors;
    this.#redraw.soon();
  }

  setOrientation(orientation: Orientation): void {
    if (orientation === this.#stage.orientation) return;
    this.#stage.orientation = orientation;
    this.#scrollToZoom(false);
    this.#redraw.soon();
  }

  /** One flag a frame; `undefined` shows all in their colours. */
  setMatches(matched: Uint8Array | undefined): void {
    this.#matched = matched;
    this.#redraw.soon();
  }

  /** Frames hovered elsewhere: outlined here. */
  setLinkedFrames(frames: ReadonlySet<number>): void {
    this.#linkedFrames = frames;
    this.#paintOutlines();
  }

  get tree(): FlameTree | undefined {
    return this.#tree;
  }

  get zoomNode(): number {
    return this.#zoomNode;
  }

  get selectedNode(): number {
    return this.#selectedNode;
  }

  /** `announce` false for a zoom that comes from the host, such as the back button. */
  zoomTo(node: number, announce: boolean = true): void {
    if (!this.#tree || node < 0 || node >= this.#tree.length) return;
    this.#zoomNode = node;
    this.#zoomHash = node === ROOT ? "" : pathHash(this.#tree, node);
    this.#camera.moveTo(this.#spanOf(node), performance.now(), !prefersReducedMotion());
    this.#makeRoom();
    this.#scrollToZoom(!prefersReducedMotion());
    this.#setHovered(NONE, 0, 0);
    this.#redraw.soon();
    if (announce) this.#listener.zoomed(node);
  }

  zoomOut(): void {
    if (!this.#tree) return;
    this.zoomTo(this.#showsZoomNode ? Math.max(ROOT, this.#tree.parentOf(this.#zoomNode)) : this.#zoomNode);
  }

  select(node: number): void {
    this.#selectedNode = node;
    this.#scrollIntoView(node);
    this.#paintOutlines();
    this.#listener.selected(node);
  }

  moveSelection(move: Move): void {
    const tree = this.#tree;
    if (!tree || tree.isEmpty) return;
    if (this.#selectedNode === NONE) return this.select(this.#zoomNode);
    this.select(step(tree, this.#selectedNode, move, this.#camera.target));
  }

  /** Selects the node, and zooms to its parent when it is too narrow or outside of what is seen. */
  reveal(node: number): void {
    const tree = this.#tree;
    if (!tree) return;
    const { left, right } = this.#camera.target;
    const pixels = (tree.total[node] * this.#stage.width) / (right - left);
    const isSeen = tree.start[node] >= left && tree.start[node] + tree.total[node] <= right;
    if (!isSeen || pixels < MOVING_MINIMUM_WIDTH) this.zoomTo(Math.max(ROOT, tree.parentOf(node)));
    this.select(node);
  }

  /** The boxes on the screen, in CSS pixels from the corner of the canvas: what tests look at. */
  visibleBoxes(): VisibleBox[] {
    const scene = this.#scene;
    if (!scene) return [];
    const { boxes } = scene.layout;
    return Array.from({ length: boxes.length }, (_, index) => ({
      node: boxes.node[index],
      name: scene.tree.nameOf(boxes.node[index]),
      x: boxes.x[index],
      y: rowTop(boxes.row[index], scene),
      w: boxes.width[index],
      h: ROW_HEIGHT - 1,
      total: scene.tree.total[boxes.node[index]],
    }));
  }

  /** The node under a point of the page. */
  nodeAt(clientX: number, clientY: number): number {
    const tree = this.#tree;
    const scene = this.#scene;
    if (!tree || !scene || this.#stage.width === 0) return NONE;
    const startedAt = performance.now();
    const origin = this.#stage.origin;
    const { left, right } = this.#camera.at(startedAt);
    const value = left + ((clientX - origin.x) * (right - left)) / this.#stage.width;
    const node = tree.nodeAt(rowAt(clientY - origin.y, scene), value);
    this.#perf.hit(performance.now() - startedAt);
    return node;
  }

  /** False after the wheel or a drag has moved the view off the node that was zoomed to. */
  get #showsZoomNode(): boolean {
    const { left, right } = this.#camera.target;
    const span = this.#spanOf(this.#zoomNode);
    return left === span.left && right === span.right;
  }

  #spanOf(node: number): { left: number; right: number } {
    const tree = this.#tree;
    if (!tree || tree.isEmpty) return { left: 0, right: 0 };
    return { left: tree.start[node], right: tree.start[node] + tree.total[node] };
  }

  // === scrolling ===

  #makeRoom(): void {
    const tree = this.#tree;
    const rows = tree && !tree.isEmpty ? tree.deepestRowBelow(this.#zoomNode) + 1 : 0;
    // Without rows below a zoomed leaf there is still room to scroll to it: otherwise its ancestors would fill the view.
    const seen = this.#zoomScroll + this.#stage.height;
    this.#stage.makeRoom(Math.max(rows * ROW_HEIGHT + 4, seen));
  }

  /** Where the zoomed node is near the edge, with some of its ancestors. */
  get #zoomScroll(): number {
    const row = this.#tree && !this.#tree.isEmpty ? this.#tree.depth[this.#zoomNode] : 0;
    return Math.max(0, row - ANCESTOR_ROWS) * ROW_HEIGHT;
  }

  #scrollToZoom(smooth: boolean): void {
    this.#smoothScrollEnds = smooth ? performance.now() + LONGEST_SMOOTH_SCROLL_MS : 0;
    this.#stage.scrollTo(this.#zoomScroll, smooth);
  }

  #scrollIntoView(node: number): void {
    if (!this.#tree || node === NONE) return;
    const top = this.#tree.depth[node] * ROW_HEIGHT;
    const scroll = this.#stage.scrollFromRoot;
    if (top < scroll) this.#stage.scrollTo(top, false);
    else if (top + ROW_HEIGHT > scroll + this.#stage.height)
      this.#stage.scrollTo(top + 2 * ROW_HEIGHT - this.#stage.height, false);
  }

  // === drawing ===

  #drawNow(): void {
    this.#redraw.settle();
    const tree = this.#tree;
    const colors = this.#colors;
    if (!tree || !colors || this.#stage.width === 0) return;

    const now = performance.now();
    const { left, right } = this.#camera.at(now);
    const moving = this.#camera.isMoving || this.#redraw.isBusy(now);
    const scroll = this.#stage.scrollFromRoot;
    const layout = layOut(
      tree,
      {
        left,
        right,
        width: this.#stage.width,
        firstRow: Math.max(0, Math.floor(scroll / ROW_HEIGHT)),
        lastRow: Math.min(tree.maxDepth, Math.floor((scroll + this.#stage.height) / ROW_HEIGHT)),
        minimumWidth: moving ? MOVING_MINIMUM_WIDTH : RESTING_MINIMUM_WIDTH,
      },
      this.#layout,
    );
    this.#scene = {
      tree,
      layout,
      colors,
      nodeColors: this.#nodeColors,
      theme: this.#theme,
      fitter: this.#fitter,
      width: this.#stage.width,
      height: this.#stage.height,
      pixelRatio: this.#stage.pixelRatio,
      orientation: this.#stage.orientation,
      scroll,
      zoomRow: tree.isEmpty ? 0 : tree.depth[this.#zoomNode],
      matched: this.#matched,
    };
    paint(this.#stage.picture, this.#scene);
    this.#paintOutlines();
    this.#perf.draw({
      milliseconds: performance.now() - now,
      boxes: layout.boxes.length + layout.slivers.length,
      moving,
    });
    if (this.#rehover) {
      this.#rehover = false;
      if (this.#pointer)
        this.#setHovered(this.nodeAt(this.#pointer.x, this.#pointer.y), this.#pointer.x, this.#pointer.y);
    }
    if (moving) this.#redraw.soon();
    else if (!this.#drewFirst && !tree.isEmpty) {
      this.#drewFirst = true;
      this.#listener.drewFirst();
    }
  }

  #paintOutlines(): void {
    const scene = this.#scene;
    if (!scene) return;
    const outlines: Outline[] = [];
    if (this.#linkedFrames.size > 0) {
      const { boxes } = scene.layout;
      for (let index = 0; index < boxes.length; index++) {
        if (!this.#linkedFrames.has(scene.tree.frame[boxes.node[index]])) continue;
        outlines.push({
          x: boxes.x[index],
          width: boxes.width[index],
          row: boxes.row[index],
          color: this.#theme.outlineHover,
        });
      }
    }
    for (const [node, color] of [
      [this.#hoveredNode, this.#theme.outlineHover],
      [this.#selectedNode, this.#theme.outlineSelected],
    ] as const) {
      const outline = this.#outlineOf(node, color);
      if (outline) outlines.push(outline);
    }
    paintOutlines(this.#stage.outlines, scene, outlines);
  }

  #outlineOf(node: number, color: string): Outline | undefined {
    const tree = this.#tree;
    if (!tree || node === NONE) return undefined;
    const { left, right } = this.#camera.at(performance.now());
    const scale = this.#stage.width / (right - left);
    const x = Math.max(0, (tree.start[node] - left) * scale);
    const end = Math.min(this.#stage.width, (tree.start[node] + tree.total[node] - left) * scale);
    return end < 0 || x > this.#stage.width ? undefined : { x, width: end - x, row: tree.depth[node], color };
  }

  // === pointer and wheel ===

  #listen(): void {
    this.#stage.on("scroll", () => this.#moved());
    this.#stage.on("pointermove", (event) => this.#pointerMoved(event));
    this.#stage.on("pointerleave", () => {
      this.#pointer = undefined;
      this.#setHovered(NONE, 0, 0);
    });
    this.#stage.on("pointerdown", (event) => this.#pointerDown(event));
    this.#stage.on("pointerup", (event) => this.#pointerUp(event));
    this.#stage.on("wheel", (event) => moveByWheel(event, this.#camera, this.#stage) && this.#moved(), false);
  }

  #moved(): void {
    this.#rehover = true;
    this.#redraw.stayBusy();
  }

  #pointerMoved(event: PointerEvent): void {
    const startedAt = performance.now();
    this.#pointer = { x: event.clientX, y: event.clientY };
    const drag = this.#drag;
    if (drag && event.buttons === 1 && !this.#camera.isWhole) {
      const distance = event.clientX - drag.x;
      if (drag.panned || Math.abs(distance) > DRAG_STARTS_AT_PIXELS) {
        this.#drag = { x: event.clientX, panned: true };
        this.#camera.panBy(-distance / this.#stage.width, startedAt);
        this.#setHovered(NONE, 0, 0);
        this.#redraw.stayBusy();
        return;
      }
    }
    this.#setHovered(this.nodeAt(event.clientX, event.clientY), event.clientX, event.clientY);
    this.#perf.hover(performance.now() - startedAt);
  }

  #setHovered(node: number, clientX: number, clientY: number): void {
    const changed = node !== this.#hoveredNode;
    this.#hoveredNode = node;
    if (changed) this.#paintOutlines();
    if (changed || node !== NONE) this.#listener.hovered(node, clientX, clientY);
  }

  #pointerDown(event: PointerEvent): void {
    // A press on the scroller itself is one on its scrollbar; a drag that ends outside must end here.
    if (event.button !== 0 || event.target === this.#stage.scroller) return;
    this.#drag = { x: event.clientX, panned: false };
    this.#stage.scroller.setPointerCapture(event.pointerId);
  }

  #pointerUp(event: PointerEvent): void {
    const drag = this.#drag;
    this.#drag = undefined;
    if (!drag || drag.panned || event.button !== 0) return;
    const node = this.nodeAt(event.clientX, event.clientY);
    if (node === NONE) return;
    this.select(node);
    this.zoomTo(node);
  }
}

function prefersReducedMotion(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
