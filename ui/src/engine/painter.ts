// Boxes onto the canvas. Boxes of one colour are filled together, text goes on top, and outlines live on a second canvas, so
// that moving the pointer never repaints the picture.

import type { FlameTree } from "../model/flame-tree.ts";
import type { Orientation } from "../state/schema.ts";
import { shadeOf, type FlameTheme, type FrameColors, type NodeColors } from "./colors.ts";
import type { BoxList, Layout } from "./layout.ts";
import type { TextFitter } from "./text.ts";

export const ROW_HEIGHT = 19;
const TEXT_PADDING = 5;
/** Below this a box has no room for three letters and an ellipsis. */
const MINIMUM_TEXT_WIDTH = 30;
const EDGE_HEIGHT = 3;
/** A box as wide as high has room for one line. */
const MINIMUM_HATCH_WIDTH = ROW_HEIGHT;
const HATCH_DISTANCE = 7;
/** Boxes from here on have a gap to their right-hand neighbour. */
const MINIMUM_GAP_WIDTH = 3;

export interface Scene {
  tree: FlameTree;
  layout: Layout;
  colors: FrameColors;
  /** Instead of the colours of frames. */
  nodeColors: NodeColors | undefined;
  theme: FlameTheme;
  fitter: TextFitter;
  /** CSS pixels. */
  width: number;
  height: number;
  pixelRatio: number;
  orientation: Orientation;
  /** Distance of the first visible pixel from row 0, in CSS pixels, in the direction of depth. */
  scroll: number;
  /** Rows above are the ancestors of the zoomed node: drawn faded. */
  zoomRow: number;
  /** One flag a frame when something is searched or pinned: the rest fades. */
  matched: Uint8Array | undefined;
}

/** Top edge of a row in CSS pixels. */
export function rowTop(row: number, scene: Pick<Scene, "orientation" | "scroll" | "height">): number {
  const fromRoot = row * ROW_HEIGHT - scene.scroll;
  return scene.orientation === "icicle" ? fromRoot : scene.height - fromRoot - ROW_HEIGHT;
}

/** The row below a point, and how the tooltip and the tests find it. */
export function rowAt(y: number, scene: Pick<Scene, "orientation" | "scroll" | "height">): number {
  const fromRoot = scene.orientation === "icicle" ? y : scene.height - y;
  return Math.floor((fromRoot + scene.scroll) / ROW_HEIGHT);
}

export function paint(context: CanvasRenderingContext2D, scene: Scene): void {
  const { width, height, pixelRatio } = scene;
  context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
  context.clearRect(0, 0, width, height);
  paintSlivers(context, scene);
  paintBoxes(context, scene);
  if (scene.nodeColors) {
    paintHatching(context, scene, scene.nodeColors);
    paintEdges(context, scene, scene.nodeColors);
  }
  paintNames(context, scene);
}

function paintSlivers(context: CanvasRenderingContext2D, scene: Scene): void {
  const { slivers } = scene.layout;
  const onePixel = 1 / scene.pixelRatio;
  context.fillStyle = scene.theme.sliver;
  for (let index = 0; index < slivers.length; index++) {
    const x = snap(slivers.x[index], scene.pixelRatio);
    const end = snap(slivers.x[index] + slivers.width[index], scene.pixelRatio);
    context.fillRect(x, rowTop(slivers.row[index], scene), Math.max(onePixel, end - x), ROW_HEIGHT - 1);
  }
}

function paintBoxes(context: CanvasRenderingContext2D, scene: Scene): void {
  const { boxes } = scene.layout;
  const byColor = groupByColor(scene);
  for (const [color, members] of byColor) {
    context.fillStyle = color;
    for (const index of members) fillBox(context, scene, boxes, index);
  }
}

function groupByColor(scene: Scene): Map<string, number[]> {
  const groups = new Map<string, number[]>();
  const { boxes } = scene.layout;
  for (let index = 0; index < boxes.length; index++) {
    const color = colorOf(scene, boxes.node[index], boxes.row[index]);
    const members = groups.get(color);
    if (members) members.push(index);
    else groups.set(color, [index]);
  }
  return groups;
}

function colorOf({ tree, theme, colors, nodeColors, matched, zoomRow }: Scene, node: number, row: number): string {
  const frame = tree.frame[node];
  const shade = shadeOf(frame, row);
  if (matched !== undefined) return matched[frame] === 1 ? theme.matched[shade] : theme.faded;
  if (row < zoomRow) return theme.faded;
  return nodeColors ? nodeColors.fill(node) : colors.fill(frame, theme, shade);
}

function paintEdges(context: CanvasRenderingContext2D, scene: Scene, { edge }: NodeColors): void {
  const { boxes } = scene.layout;
  for (let index = 0; index < boxes.length; index++) {
    const color = boxes.row[index] < scene.zoomRow ? undefined : edge(boxes.node[index]);
    if (color === undefined) continue;
    context.fillStyle = color;
    fillBox(context, scene, boxes, index, EDGE_HEIGHT);
  }
}

/** All lines as one path: a pattern would have to be made anew for each theme and scale, and swims when the picture moves. */
function paintHatching(context: CanvasRenderingContext2D, scene: Scene, { hatching, hatchColor }: NodeColors): void {
  if (!hatching || !hatchColor || scene.matched !== undefined) return;
  const { boxes } = scene.layout;
  const height = ROW_HEIGHT - 1;
  context.beginPath();
  for (let index = 0; index < boxes.length; index++) {
    if (boxes.width[index] < MINIMUM_HATCH_WIDTH || boxes.row[index] < scene.zoomRow || !hatching(boxes.node[index])) continue;
    const top = rowTop(boxes.row[index], scene);
    const left = Math.max(0, boxes.x[index]);
    const right = Math.min(scene.width, boxes.x[index] + boxes.width[index] - 1);
    for (let x = left; x + height <= right; x += HATCH_DISTANCE) {
      context.moveTo(x, top + height);
      context.lineTo(x + height, top);
    }
  }
  context.strokeStyle = hatchColor;
  context.lineWidth = 1;
  context.stroke();
}

/** The whole box, or `height` pixels of its foot. */
function fillBox(
  context: CanvasRenderingContext2D,
  scene: Scene,
  boxes: BoxList,
  index: number,
  height: number = ROW_HEIGHT - 1,
): void {
  const { pixelRatio } = scene;
  const x = snap(boxes.x[index], pixelRatio);
  const end = snap(boxes.x[index] + boxes.width[index], pixelRatio);
  const gap = boxes.width[index] >= MINIMUM_GAP_WIDTH ? 1 : 0;
  const top = rowTop(boxes.row[index], scene) + ROW_HEIGHT - 1 - height;
  context.fillRect(x, top, Math.max(1 / pixelRatio, end - x - gap), height);
}

function paintNames(context: CanvasRenderingContext2D, scene: Scene): void {
  const { tree, theme, fitter, matched, zoomRow } = scene;
  const { boxes } = scene.layout;
  context.font = theme.font;
  context.textBaseline = "middle";
  context.fontKerning = "none";
  for (let index = 0; index < boxes.length; index++) {
    const room = boxes.width[index] - 2 * TEXT_PADDING;
    if (room < MINIMUM_TEXT_WIDTH - 2 * TEXT_PADDING) continue;
    const frame = tree.frame[boxes.node[index]];
    const text = fitter.fit(tree.frames.name(frame), tree.frames.shortName(frame), room);
    if (text === "") continue;
    const isMatched = matched?.[frame] === 1;
    const isFaded = matched === undefined ? boxes.row[index] < zoomRow : !isMatched;
    context.fillStyle = isMatched ? theme.textMatched : isFaded ? theme.textFaded : theme.text;
    context.fillText(text, boxes.x[index] + TEXT_PADDING, rowTop(boxes.row[index], scene) + ROW_HEIGHT / 2);
  }
}

export interface Outline {
  x: number;
  width: number;
  row: number;
  color: string;
}

export function paintOutlines(context: CanvasRenderingContext2D, scene: Scene, outlines: readonly Outline[]): void {
  const { width, height, pixelRatio } = scene;
  context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.lineWidth = 2;
  for (const outline of outlines) {
    context.strokeStyle = outline.color;
    context.strokeRect(outline.x + 1, rowTop(outline.row, scene) + 1, Math.max(1, outline.width - 3), ROW_HEIGHT - 3);
  }
}

/** To whole device pixels: a box edge between two of them is a blur. */
function snap(x: number, pixelRatio: number): number {
  return Math.round(x * pixelRatio) / pixelRatio;
}
