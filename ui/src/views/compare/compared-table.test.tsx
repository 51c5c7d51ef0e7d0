// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RenderedPage, textOf } from "../rendered-page.ts";

const MS = 1e6;
const side = { query: '{service_name="shop"}', from: 0, to: 3600e3, samples: 5000 };
const both = (before: number, after: number) => ({ before: { self: before, total: before }, after: { self: after, total: after } });
const sure = { ratio: 1.5, low: 1.2, high: 1.9, p: 0.0001, q: 0.0004, is_significant: true, permutation_p: 0.01, confirmation: "confirmed" };
const chance = { ratio: 1.02, low: 0.9, high: 1.1, p: 0.6, q: 0.8, is_significant: false, permutation_p: null, confirmation: null };
const place = { file: "shop.go", mapping: "/usr/bin/shop", kind: "go" };

/** As `/api/v1/diff` answers. */
const ANSWER = {
  type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
  unit: "nanoseconds",
  before: { ...side, total: 500 * MS },
  after: { ...side, total: 650 * MS },
  statistics: {
    normalization: "share",
    fdr: 0.05,
    clusters_are: "windows",
    clusters_before: 6,
    clusters_after: 6,
    is_paired: false,
    size_factor: 1,
    tested: 3,
    arrangements: 924,
    reason: null,
  },
  functions: [
    { name: "encode", ...place, ...both(200 * MS, 300 * MS), change: sure, total_change: sure },
    { name: "decode", ...place, ...both(100 * MS, 200 * MS), change: { ...sure, permutation_p: 0.2, confirmation: "doubtful" }, total_change: sure },
    { name: "idle", ...place, ...both(200 * MS, 150 * MS), change: chance, total_change: chance },
  ],
  tree: {
    nodes: 1,
    pruned: 0,
    frames: [{ name: "total", file: "", mapping: "", kind: "native", line: 0 }],
    frame: [0],
    depth: [0],
    subtree_end: [1],
    before_total: [500 * MS],
    before_self: [500 * MS],
    after_total: [650 * MS],
    after_self: [650 * MS],
  },
};

let page: RenderedPage;

async function tableOf(search: string, answer: object = ANSWER) {
  page = new RenderedPage(`?v=1&live=0&screen=compare${search}`);
  page.answers.set("diff", () => answer);
  const store = await import("../store.ts");
  const { diffSource } = await import("./diff-source.ts");
  const { ComparedTable } = await import("./compared-table.tsx");
  store.pictureSource.value = diffSource;
  store.start();
  await page.show(<ComparedTable />);
  return store;
}

const rows = (): (string | undefined)[] => page.all("[data-testid=top-row]").map(({ dataset }) => dataset.function);

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

it("has the values of both sides, the change, and how sure it is", async () => {
  await tableOf("");
  expect(rows()).toEqual(["decode", "encode", "idle"]);
  const [decode, encode, idle] = page.all("[data-testid=top-row]");
  expect([...encode.querySelectorAll("[role=gridcell]")].map(textOf).slice(0, 4)).toEqual(["200 ms", "300 ms", "+100 ms+50 %", "+20 … +90 %"]);
  expect(encode.querySelector(".top-interval")?.getAttribute("title")).toBe(
    "significant: q = below 0.001; confirmed: exchanging windows makes as much in 1.0 % of 924 ways",
  );
  expect(decode.querySelector(".top-interval")?.textContent).toBe("+20 … +90 % ?");
  expect(idle.querySelector(".top-interval")?.classList.contains("is-chance")).toBe(true);
});

it("is ordered by what is clicked, once more the other way round", async () => {
  const store = await tableOf("");
  await page.click("Before");
  expect(rows()).toEqual(["encode", "idle", "decode"]);
  await page.click("Before▾");
  expect(rows()).toEqual(["decode", "encode", "idle"]);
  expect(store.view.value).toMatchObject({ comparedBy: "before", comparedDescending: false });
});

it("leaves what is asked for, and says why nothing is left and how to see the rest", async () => {
  const store = await tableOf("");
  await page.click("Significant");
  expect(rows()).toEqual(["decode", "encode"]);
  await page.click("New");
  expect(page.text).toContain("No function is new.");
  await page.click("show all functions");
  expect(rows()).toHaveLength(3);
  store.update({ search: "nothing" });
  await page.settle();
  expect(page.text).toContain("No function matches the search.");
  await page.click("clear the search");
  expect(rows()).toHaveLength(3);
});

it("tells no interval where the server knows none", async () => {
  const { statistics: _, ...plain } = ANSWER;
  await tableOf("", { ...plain, functions: ANSWER.functions.map(({ change: _change, total_change: _total, ...rest }) => rest) });
  expect(page.all(".top-interval")).toEqual([]);
  expect(page.all("button").map(textOf)).not.toContain("Significant");
});

it("copies the name of a row, and nothing behind it compares", async () => {
  const writeText = vi.fn<(text: string) => Promise<void>>(() => Promise.resolve());
  vi.stubGlobal("navigator", { clipboard: { writeText } });
  await tableOf("");
  const heard = vi.fn<() => void>();
  document.addEventListener("keydown", heard);
  const grid = page.byTestId("top-table");
  if (!grid) throw new Error("no table");
  await page.press(grid, "ArrowDown");
  heard.mockClear();
  expect((await page.press(grid, "c")).defaultPrevented).toBe(true);
  document.removeEventListener("keydown", heard);
  expect(writeText).toHaveBeenCalledExactlyOnceWith("decode");
  expect(heard).not.toHaveBeenCalled();
  // What the browser copies with Ctrl is the browser's.
  expect((await page.press(grid, "c", { ctrlKey: true })).defaultPrevented).toBe(false);
});
