// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RenderedPage, textOf } from "../rendered-page.ts";

const MS = 1e6;
const side = { query: '{service_name="shop"}', from: 0, to: 3600e3, samples: 5000 };
const frame = (name: string) => ({ name, file: "", mapping: "/usr/bin/shop", kind: "native", line: 0 });
const milliseconds = (...values: number[]): number[] => values.map((value) => value * MS);

/** As `/api/v1/diff` answers: `total` with `handle` over `quote` and `decode`, and `idle`. */
const ANSWER = {
  type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
  unit: "nanoseconds",
  before: { ...side, total: 500 * MS },
  after: { ...side, total: 650 * MS },
  functions: [],
  tree: {
    nodes: 5,
    pruned: 0,
    frames: ["total", "handle", "quote", "decode", "idle"].map(frame),
    frame: [0, 1, 2, 3, 4],
    depth: [0, 1, 2, 2, 1],
    subtree_end: [5, 4, 3, 4, 5],
    before_total: milliseconds(500, 400, 200, 190, 100),
    before_self: milliseconds(0, 10, 200, 190, 100),
    after_total: milliseconds(650, 560, 350, 200, 90),
    after_self: milliseconds(0, 10, 350, 200, 90),
  },
};

let page: RenderedPage;

const rows = (): string[][] => page.all("tbody tr").map((row) => [...row.children].map(textOf));

beforeEach(async () => {
  vi.resetModules();
  vi.useFakeTimers();
  page = new RenderedPage("?v=1&live=0&screen=compare&norm=absolute");
  page.answers.set("diff", () => ANSWER);
  const store = await import("../store.ts");
  const { diffSource } = await import("./diff-source.ts");
  const { ChangeParts } = await import("./change-parts.tsx");
  store.pictureSource.value = diffSource;
  store.start();
  await page.show(<ChangeParts />);
  await page.click("Where did it go?");
});

afterEach(() => {
  page.close();
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("tells the change apart, and names the place that makes most of it", () => {
  expect(page.byTestId("change-parts-sum")?.textContent).toContain("500 ms → 650 ms: +150 ms (+30 %");
  expect(rows()).toEqual([
    ["handle", "400 ms", "560 ms", "+160 ms", "107 %"],
    ["idle", "100 ms", "90.0 ms", "−10.0 ms", "−6.7 %"],
  ]);
  expect(page.byTestId("change-parts-explained")?.textContent).toBe("100 % of it is in quote, 2 calls below.");
});

it("is walked down by its rows and up again", async () => {
  await page.click("handle");
  expect(rows().map(([name]) => name)).toEqual(["quote", "decode"]);
  await page.click("quote");
  expect(page.text).toContain("No single callee makes most of it.");
  expect(rows()).toEqual([["its own code", "200 ms", "350 ms", "+150 ms", "100 %"]]);
  await page.click("up to its caller");
  expect(rows().map(([name]) => name)).toEqual(["quote", "decode"]);
});
