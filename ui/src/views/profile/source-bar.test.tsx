// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { sourceRows, type SourceAnswer } from "../../model/source-rows.ts";
import { RenderedPage, textOf } from "../rendered-page.ts";

/** As `/api/v1/source` answers about a function of two binaries. */
const PLACE = {
  file: "src/burn.c",
  binary: "/usr/bin/checkout",
  start_line: 10,
  hottest_line: 11,
  self: 70,
  total: 80,
  lines: [
    { line: 11, self: 60, total: 70 },
    { line: 12, self: 10, total: 10 },
  ],
  unknown: { self: 0, total: 0 },
};
const ANSWER: SourceAnswer = {
  unit: "count",
  total: 100,
  function: "burn",
  places: [
    { file: "src/burn.c", binary: "/usr/bin/checkout", build_ids: [], kind: "native", self: 70, total: 80 },
    { file: "old/burn.c", binary: "/usr/bin/legacy", build_ids: [], kind: "native", self: 20, total: 20 },
  ],
  place: PLACE,
  source: { state: "no_roots", message: "this server does not know where sources are", hint: "set server.source_roots" },
};

let page: RenderedPage;

async function barOf(search: string, answer: SourceAnswer = ANSWER) {
  page = new RenderedPage(`?v=1&live=0&view=source&fn=burn${search}`);
  page.tree = { frame: { name: "total" }, self: 0, children: [{ frame: { name: "main" }, self: 0, children: [{ frame: { name: "burn" }, self: 100 }] }] };
  const store = await import("../store.ts");
  const { SourceBar } = await import("./source-bar.tsx");
  store.start();
  await page.settle();
  await page.show(<SourceBar answer={answer} place={PLACE} rows={sourceRows(PLACE, undefined)} hasText={false} />);
  return store;
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
});

it("says what the function costs, and how many lines are hot", async () => {
  await barOf("");
  expect(page.byTestId("source-cost")?.textContent).toBe("self 70 (70.0 %) · total 80 (80.0 %)");
  expect(page.byTestId("source-found")?.textContent).toBe("2 hot");
  expect(page.text).not.toContain("for this call path");
});

it("tells both shares where the values are of a part", async () => {
  await barOf("", { ...ANSWER, total: 80 });
  expect(page.byTestId("source-cost")?.textContent).toBe("self 70 (87.5 % of view, 70.0 % of all) · total 80 (100 % of view, 80.0 % of all)");
});

it("chooses among places, and what is shown", async () => {
  const store = await barOf("");
  const chooser = page.byTestId("place-select");
  if (!(chooser instanceof HTMLSelectElement)) throw new Error("no chooser");
  expect([...chooser.options].map(textOf)).toEqual(["80.0 % src/burn.c · /usr/bin/checkout", "20.0 % old/burn.c · /usr/bin/legacy"]);
  chooser.value = "1";
  chooser.dispatchEvent(new Event("change", { bubbles: true }));
  await page.settle();
  expect(store.view.value).toMatchObject({ codeFile: "old/burn.c", codeBinary: "/usr/bin/legacy" });
  await page.click("Disassembly");
  expect(store.view.value.code).toBe("disassembly");
});

it("lets go of the call path", async () => {
  const store = await barOf("&path=main%0Aburn");
  expect(page.text).toContain("for this call path");
  await page.click("all callers");
  expect(store.view.value).toMatchObject({ path: "", zoom: "" });
  expect(page.text).not.toContain("for this call path");
});
