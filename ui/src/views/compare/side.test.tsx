// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RenderedPage, textOf } from "../rendered-page.ts";

const side = { query: "{}", from: 0, to: 3600e3 };

/** As `/api/v1/diff` answers when nothing was stored in the range before. */
const ANSWER = {
  type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
  unit: "nanoseconds",
  before: { ...side, total: 0, samples: 0, hint: "there are no profiles in this time range" },
  after: { ...side, total: 650e6, samples: 5000 },
  functions: [],
  tree: {
    nodes: 1,
    pruned: 0,
    frames: [{ name: "total", file: "", mapping: "", kind: "native", line: 0 }],
    frame: [0],
    depth: [0],
    subtree_end: [1],
    before_total: [0],
    before_self: [0],
    after_total: [650e6],
    after_self: [650e6],
  },
};

let page: RenderedPage;

beforeEach(async () => {
  vi.resetModules();
  vi.useFakeTimers();
  page = new RenderedPage("?v=1&live=0&screen=compare");
  page.answers.set("diff", () => ANSWER);
  const store = await import("../store.ts");
  const { diffSource } = await import("./diff-source.ts");
  const { BeforeSide } = await import("./side.tsx");
  store.pictureSource.value = diffSource;
  store.start();
  await page.show(<BeforeSide />);
});

afterEach(() => {
  page.close();
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("tells how many samples a side has apart from why it has none", () => {
  expect(page.all(".compare-total .muted").map(textOf)).toEqual(["0 samples · there are no profiles in this time range"]);
});
