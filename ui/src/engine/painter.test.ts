import { describe, expect, it } from "vitest";
import { encodeTree } from "../../bench/generate.ts";
import { FlameTree } from "../model/flame-tree.ts";
import { FrameColors, type FlameTheme, type NodeColors } from "./colors.ts";
import { emptyLayout, layOut } from "./layout.ts";
import { paint, ROW_HEIGHT, type Scene } from "./painter.ts";
import { TextFitter } from "./text.ts";

const TREE = FlameTree.decode(
  encodeTree({
    frame: { name: "total" },
    self: 0,
    children: [
      { frame: { name: "work" }, self: 30 },
      { frame: { name: "rest" }, self: 10 },
    ],
  }),
);
const [WORK, REST] = [1, 2];
const THEME = { hues: ["hue", "hue"], root: "root", faded: "faded", matched: ["matched", "matched"] } as unknown as FlameTheme;

interface Filled {
  color: string;
  x: number;
  y: number;
  width: number;
  height: number;
}

function painted(changes: Partial<Scene>): Filled[] {
  const filled: Filled[] = [];
  const context = {
    fillStyle: "",
    fillRect(x: number, y: number, width: number, height: number) {
      filled.push({ color: this.fillStyle, x, y, width, height });
    },
    setTransform: () => undefined,
    clearRect: () => undefined,
    fillText: () => undefined,
  };
  const window = { left: 0, right: 40, width: 400, firstRow: 0, lastRow: 1, minimumWidth: 1 };
  const scene: Scene = {
    tree: TREE,
    layout: layOut(TREE, window, emptyLayout()),
    colors: new FrameColors(TREE.frames, "package", 1),
    nodeColors: undefined,
    theme: THEME,
    fitter: new TextFitter((text) => text.length),
    width: 400,
    height: 100,
    pixelRatio: 1,
    orientation: "icicle",
    scroll: 0,
    zoomRow: 0,
    matched: undefined,
    ...changes,
  };
  paint(context as unknown as CanvasRenderingContext2D, scene);
  return filled;
}

const colorsOf = (filled: readonly Filled[]): string[] => filled.map(({ color }) => color).toSorted();

describe("colours of nodes", () => {
  const nodeColors: NodeColors = {
    fill: (node) => (node === WORK ? "red" : "grey"),
    edge: (node) => (node === REST ? "new" : undefined),
  };

  it("take the place of those of frames", () => {
    expect(colorsOf(painted({}))).toEqual(["hue", "hue", "root"]);
    expect(colorsOf(painted({ nodeColors }))).toEqual(["grey", "grey", "new", "red"]);
  });

  it("have an edge along the foot of the box, as wide as it", () => {
    const filled = painted({ nodeColors });
    const box = filled.find(({ x, y }) => x === 300 && y === ROW_HEIGHT);
    const edge = filled.find(({ color }) => color === "new");
    expect(box).toMatchObject({ color: "grey", width: 99, height: ROW_HEIGHT - 1 });
    expect(edge).toEqual({ color: "new", x: 300, y: 2 * ROW_HEIGHT - 4, width: 99, height: 3 });
  });

  it("give way to what is searched, and above what is zoomed to", () => {
    const matched = Uint8Array.from(TREE.frame, (_, frame) => (TREE.frames.name(frame) === "work" ? 1 : 0));
    expect(colorsOf(painted({ nodeColors, matched }))).toEqual(["faded", "faded", "matched", "new"]);
    expect(colorsOf(painted({ nodeColors, zoomRow: 1 }))).toEqual(["faded", "grey", "new", "red"]);
  });
});
