import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { encodeTree, type TreeSpec } from "../../bench/generate.ts";
import { FlameTree, NONE } from "../model/flame-tree.ts";
import { pathHash } from "../model/path-hash.ts";
import type { FlameTheme } from "./colors.ts";
import { fakeElements, type FakeScroller } from "./fake-elements.ts";
import { FlameView } from "./flame-view.ts";
import { ROW_HEIGHT } from "./painter.ts";
import { EnginePerf } from "./perf.ts";

/** One stack, `depth` frames below the root. */
function chain(depth: number): FlameTree {
  let spec: TreeSpec = { frame: { name: `f${depth}` }, self: 10 };
  for (let row = depth - 1; row >= 0; row--) spec = { frame: { name: row === 0 ? "total" : `f${row}` }, self: 0, children: [spec] };
  return FlameTree.decode(encodeTree(spec));
}

let resized: () => void;
let ratioListener: (() => void) | undefined;
let scroller: FakeScroller;
let hovered: number;

function mounted({ clientHeight = 400 } = {}): FlameView {
  const { elements, scroller: fake } = fakeElements();
  scroller = fake;
  scroller.clientHeight = clientHeight;
  hovered = NONE;
  const theme = { hues: ["a", "b"], kernel: [], matched: [], font: "11px x" } as unknown as FlameTheme;
  return new FlameView(elements, theme, new EnginePerf(), {
    hovered: (node) => (hovered = node),
    selected: () => undefined,
    zoomed: () => undefined,
    drewFirst: () => undefined,
  });
}

/** As in a browser, a query tells once when the ratio leaves it. */
function moveToScreen(ratio: number): void {
  vi.stubGlobal("devicePixelRatio", ratio);
  const listener = ratioListener;
  ratioListener = undefined;
  listener?.();
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("devicePixelRatio", 1);
  vi.stubGlobal("ResizeObserver", class {
    constructor(callback: () => void) {
      resized = callback;
    }
    observe(): void {}
    disconnect(): void {}
  });
  vi.stubGlobal("matchMedia", (query: string) => ({
    matches: query.includes("reduced-motion"),
    addEventListener: (_: string, listener: () => void) => (ratioListener = listener),
  }));
  vi.stubGlobal("requestAnimationFrame", (callback: () => void) => setTimeout(callback, 16));
  vi.stubGlobal("cancelAnimationFrame", (id: ReturnType<typeof setTimeout>) => clearTimeout(id));
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("scrolling", () => {
  it("stays where it is while refreshes lack the zoomed path", () => {
    const view = mounted();
    const lost = "0123456789abcdef";
    view.setTree(chain(60), lost);
    scroller.scrollTo({ top: 300 });
    view.setTree(chain(60), lost);
    expect(scroller.scrollTop).toBe(300);
    // And goes to it once a refresh has it again.
    const tree = chain(60);
    view.setTree(tree, pathHash(tree, 40));
    expect(scroller.scrollTop).toBe(37 * ROW_HEIGHT);
  });

  it("reaches a zoomed leaf, so that its ancestors do not fill the view", () => {
    const view = mounted();
    view.setTree(chain(60), "");
    view.zoomTo(60);
    expect(scroller.scrollTop).toBe(57 * ROW_HEIGHT);
  });

  it("keeps its distance from a root at the bottom", () => {
    const view = mounted();
    view.setOrientation("flame");
    view.setTree(chain(60), "");
    const atRoot = (): number => 61 * ROW_HEIGHT + 4 - scroller.clientHeight;
    expect(scroller.scrollTop).toBe(atRoot());
    scroller.clientHeight = 500;
    resized();
    expect(scroller.scrollTop).toBe(atRoot());
    scroller.clientHeight = 300;
    resized();
    expect(scroller.scrollTop).toBe(atRoot());
    view.setTree(chain(80), "");
    expect(scroller.scrollTop).toBe(81 * ROW_HEIGHT + 4 - 300);
  });

  it("begins at a root at the bottom, also when it is shown before it is measured", () => {
    const view = mounted({ clientHeight: 0 });
    view.setOrientation("flame");
    resized();
    scroller.clientHeight = 400;
    view.setTree(chain(60), "");
    scroller.emit("scroll");
    resized();
    expect(scroller.scrollTop).toBe(61 * ROW_HEIGHT + 4 - 400);
  });

  it("asks anew what is below a pointer that rests", () => {
    const view = mounted();
    view.setTree(chain(60), "");
    vi.advanceTimersByTime(200);
    scroller.emit("pointermove", { clientX: 100, clientY: ROW_HEIGHT / 2, buttons: 0 });
    expect(hovered).toBe(0);
    scroller.scrollTo({ top: 5 * ROW_HEIGHT });
    vi.advanceTimersByTime(200);
    expect(hovered).toBe(5);
  });
});

it("is as sharp as the screen that the window was moved to", () => {
  const { elements } = fakeElements();
  const view = new FlameView(elements, { hues: [], font: "" } as unknown as FlameTheme, new EnginePerf(), {
    hovered: () => undefined,
    selected: () => undefined,
    zoomed: () => undefined,
    drewFirst: () => undefined,
  });
  expect(elements.picture.width).toBe(800);
  moveToScreen(2);
  expect(elements.picture.width).toBe(1600);
  moveToScreen(1.5);
  expect(elements.picture.width).toBe(1200);
  view.destroy();
});
