// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RenderedPage } from "./rendered-page.ts";

const MS = 1e6;
const SIDE = { query: "{}", from: 0, to: 1000, samples: 100 };
const DIFF = {
  unit: "nanoseconds",
  before: { ...SIDE, total: 400 * MS },
  after: { ...SIDE, total: 500 * MS },
  functions: [],
  tree: {
    nodes: 2,
    pruned: 0,
    frames: [
      { name: "total", file: "", mapping: "", kind: "native", line: 0 },
      { name: "work", file: "work.go", mapping: "", kind: "go", line: 3 },
    ],
    frame: [0, 1],
    depth: [0, 1],
    subtree_end: [2, 2],
    before_total: [400 * MS, 100 * MS],
    before_self: [300 * MS, 100 * MS],
    after_total: [500 * MS, 200 * MS],
    after_self: [300 * MS, 200 * MS],
  },
};

let page: RenderedPage;

beforeEach(() => {
  vi.resetModules();
  vi.useFakeTimers();
});

afterEach(() => {
  page.close();
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("tells both sides of a comparison", async () => {
  page = new RenderedPage("?v=1&live=0&screen=compare&norm=absolute");
  page.answers.set("diff", () => DIFF);
  const store = await import("./store.ts");
  const { diffSource } = await import("./compare/diff-source.ts");
  const { StatusBar } = await import("./status-bar.tsx");
  const { selectedNode } = await import("./highlight.ts");
  store.pictureSource.value = diffSource;
  store.start();
  await page.show(<StatusBar />);
  selectedNode.value = 1;
  await page.settle();
  const said = page.byTestId("flamegraph-status")?.textContent ?? "";
  expect(said).toContain("work");
  expect(said).toContain("total 100 ms → 200 ms (+100 ms, +100 %)");
});

it("tells one side of a profile, and its shares", async () => {
  page = new RenderedPage("?v=1&live=0");
  page.tree = { frame: { name: "total" }, self: 0, children: [{ frame: { name: "work" }, self: 5 }] };
  const store = await import("./store.ts");
  const { StatusBar } = await import("./status-bar.tsx");
  store.start();
  await page.show(<StatusBar />);
  expect(page.byTestId("flamegraph-status")?.textContent).toContain("total 5.00 ns100 % of all");
});
