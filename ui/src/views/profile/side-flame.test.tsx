// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { encodeTree, type TreeSpec } from "../../../bench/generate.ts";
import { FlameTree } from "../../model/flame-tree.ts";
import { RenderedPage, textOf } from "../rendered-page.ts";

const named = (name: string, self: number, children: TreeSpec[] = []): TreeSpec => ({ frame: { name }, self, children });

let page: RenderedPage;

async function side(...callees: TreeSpec[]) {
  page = new RenderedPage("?v=1&live=0&view=sandwich&fn=work");
  // Nothing is drawn: what is read is what counts here.
  const context = new Proxy({}, { get: (_, name) => (name === "measureText" ? () => ({ width: 7 }) : () => undefined), set: () => true });
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockImplementation(() => context as never);
  const store = await import("../store.ts");
  const { SideFlame } = await import("./side-flame.tsx");
  const tree = FlameTree.decode(encodeTree(named("total", 10, callees)));
  await page.show(<SideFlame tree={tree} orientation="icicle" label="Callees of work" testId="callees" />);
  const grid = page.byTestId("callees");
  if (!grid) throw new Error("no picture");
  const active = (): string => {
    const id = grid.getAttribute("aria-activedescendant");
    const row = id === null ? null : document.getElementById(id);
    return row ? textOf(row) : "";
  };
  return { store, grid, active };
}

beforeEach(() => {
  vi.resetModules();
  vi.useFakeTimers();
});

afterEach(() => {
  page.close();
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

it("tells each step of the arrow keys, with what it costs", async () => {
  const { store, grid, active } = await side(named("encode", 20, [named("quote", 10)]), named("log", 10));
  expect(active()).toBe("");
  await page.press(grid, "ArrowDown");
  await page.press(grid, "ArrowDown");
  expect(active()).toBe("encode30.0 ns60.0 % of the function");
  await page.press(grid, "ArrowRight");
  expect(active()).toBe("log10.0 ns20.0 % of the function");
  await page.press(grid, "Enter");
  expect(store.view.value.pinned).toBe("log");
});

it("copies a name in place of comparing", async () => {
  const writeText = vi.fn<(text: string) => Promise<void>>(() => Promise.resolve());
  vi.stubGlobal("navigator", { clipboard: { writeText } });
  const { grid } = await side(named("encode", 20));
  await page.press(grid, "ArrowDown");
  await page.press(grid, "ArrowDown");
  expect((await page.press(grid, "c")).defaultPrevented).toBe(true);
  expect(writeText).toHaveBeenCalledExactlyOnceWith("encode");
});
