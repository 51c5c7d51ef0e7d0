// Which colour a frame has. Neighbours of one package look alike and the kernel stands apart; the colours themselves are design
// tokens, read by the page.

import type { FrameTable } from "../model/frame-table.ts";
import { hashString } from "../model/hash.ts";
import type { ColorBy } from "../state/schema.ts";

/** Colours the painter needs, as the canvas understands them. */
export interface FlameTheme {
  /** Two shades for each hue: `hues[2 * hue + shade]`. */
  hues: readonly string[];
  kernel: readonly [string, string];
  other: string;
  root: string;
  faded: string;
  matched: readonly [string, string];
  sliver: string;
  text: string;
  textFaded: string;
  textMatched: string;
  outlineHover: string;
  outlineSelected: string;
  font: string;
}

/** Colours of nodes and not of frames: where two trees are compared, a function changed in one place and not in another. */
export interface NodeColors {
  fill(node: number): string;
  /** Along the foot of the box, for what the fill leaves open. */
  edge(node: number): string | undefined;
  /** Drawn over the fill, or nothing. */
  hatching?: (node: number) => boolean;
  /** Of the hatching. */
  hatchColor?: string;
}

const KERNEL = -1;
const OTHER = -2;
const ROOT_FRAME = -3;

/** One colour index a frame, worked out once a tree and colouring. */
export class FrameColors {
  readonly #slots: Int16Array;

  constructor(frames: FrameTable, colorBy: ColorBy, hueCount: number) {
    this.#slots = new Int16Array(frames.length);
    for (let frame = 0; frame < frames.length; frame++) this.#slots[frame] = slotOf(frames, frame, colorBy, hueCount);
  }

  fill(frame: number, theme: FlameTheme, shade: number): string {
    const slot = this.#slots[frame];
    switch (slot) {
      case KERNEL:
        return theme.kernel[shade];
      case OTHER:
        return theme.other;
      case ROOT_FRAME:
        return theme.root;
      default:
        return theme.hues[2 * slot + shade];
    }
  }
}

/** Kinds of code in the order of their hues: one has the same colour in every picture. */
const KINDS = ["native", "go", "rust", "jvm", "cpython", "v8js", "dotnet", "php", "ruby", "perl", "beam", "luajit"];

/** The hue of a kind of code; of one that is not known yet, any. */
export function kindHue(kind: string, hueCount: number): number {
  const known = KINDS.indexOf(kind);
  return (known === -1 ? hashString(kind) : known) % hueCount;
}

function slotOf(frames: FrameTable, frame: number, colorBy: ColorBy, hueCount: number): number {
  if (frame === 0) return ROOT_FRAME;
  const kind = frames.kind(frame);
  if (kind === "other") return OTHER;
  if (kind === "kernel") return KERNEL;
  if (colorBy === "kind") return kindHue(kind, hueCount);
  return hashString(colorKey(frames, frame, colorBy)) % hueCount;
}

function colorKey(frames: FrameTable, frame: number, colorBy: Exclude<ColorBy, "kind">): string {
  switch (colorBy) {
    // Reasons colour nodes and not frames: this is what is seen until they are known.
    case "auto":
    case "reason":
    case "package":
      return frames.package(frame);
    case "file":
      return frames.file(frame) || frames.mapping(frame);
    case "binary":
      return frames.mapping(frame);
  }
}

/** Rows alternate, so that callers and callees of one package part; and so do most neighbours, whose frames have other numbers. */
export function shadeOf(frame: number, row: number): number {
  return (frame + row) & 1;
}
