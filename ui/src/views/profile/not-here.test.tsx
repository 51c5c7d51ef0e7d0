// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { ChartHeader } from "../../model/chart.ts";
import { RenderedPage, textOf } from "../rendered-page.ts";

let page: RenderedPage;

const state = (): string => page.all(".state").map(textOf).join("\n");
const command = (): string | undefined => page.root.querySelector(".state code")?.textContent ?? undefined;

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

it("a function without callers and callees here has ways out, and the command of the sandwich", async () => {
  page = new RenderedPage("?v=1&live=0&view=sandwich&fn=work&path=main");
  page.answers.set("callers", () => ({ unit: "nanoseconds", callers: null, callees: null }));
  page.answers.set("top", () => ({ total: 1, functions: [{ name: "main", file: "", mapping: "", kind: "go", self: 1, total: 1 }] }));
  const store = await import("../store.ts");
  const { SandwichPane } = await import("./sandwich-pane.tsx");
  store.start();
  await page.show(<SandwichPane />);
  expect(state()).toContain("Not in this selection");
  expect(state()).toContain("No stack has work.");
  expect(command()).toContain("candela query callers 'fn:^work$'");
  await page.click("All callers");
  expect(store.view.value).toMatchObject({ path: "", pinned: "work" });
});

it("a source that is not in this selection leads to another function", async () => {
  page = new RenderedPage("?v=1&live=0&view=source&fn=work");
  page.answers.set("source", () => ({
    unit: "nanoseconds",
    total: 1,
    function: "work",
    places: [],
    place: null,
    source: null,
    hint: "no stack of this selection has work; /api/v1/top lists what there is",
  }));
  const store = await import("../store.ts");
  const { SourcePane } = await import("./source-pane.tsx");
  store.start();
  await page.show(<SourcePane />);
  expect(state()).toContain("No stack of this selection has work; /api/v1/top lists what there is.");
  expect(command()).toContain("candela query source work");
  await page.click("Another function");
  expect(store.view.value.pinned).toBe("");
});

it("a chart without samples says why, and looks at a longer range", async () => {
  page = new RenderedPage("?v=1&live=0&view=chart");
  const store = await import("../store.ts");
  const { NoTimes } = await import("./no-times.tsx");
  const header = { timed: 0, untimed: 0, hint: "there are no profiles in this time range" } as ChartHeader;
  await page.show(<NoTimes header={header} />);
  expect(state()).toContain("There are no profiles in this time range.");
  expect(command()).toContain("candela query top");
  await page.click("Last 24 hours");
  expect(store.view.value.from).toBe("now-1d");
});
