// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RenderedPage, textOf } from "./rendered-page.ts";

const STATUS = {
  version: "0.1.0",
  agents: [
    { host: "web-1", name: "candela", is_stale: false, cost: { cpu_ppm: 4200 } },
    { host: "web-2", name: "candela", is_stale: false, cost: { cpu_ppm: 9100 } },
  ],
  quality: { samples: 100_000, complete: 97_000, no_table: 2000, truncated_stack: 1000, kernel_only: 0 },
  drops: [] as { reason: string; count: number }[],
  drop_reasons: {
    window_full: { unit: "samples", is_loss: true, remedy: "raise agent.window_samples" },
    spool_full: { unit: "profiles", is_loss: true, remedy: null },
    frame_unnamed: { unit: "frames", is_loss: false, remedy: null },
  },
};

let page: RenderedPage;

async function barOf(search: string, status: object) {
  page = new RenderedPage(search);
  page.tree = { frame: { name: "total" }, self: 0, children: [{ frame: { name: "main" }, self: 8000 }, { frame: { name: "libfoo+0x12", mapping: "libfoo.so" }, self: 2000 }] };
  page.answers.set("status", () => status);
  const store = await import("./store.ts");
  const { QualityBar } = await import("./quality-bar.tsx");
  store.start();
  await page.show(<QualityBar />);
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

it("says what is sure, named and complete, and that nothing was dropped", async () => {
  await barOf("?v=1&live=0", STATUS);
  expect(page.all("button").map(textOf)).toEqual([
    "10.0 k samples · 10 ± 0.6 %",
    "20.0 % unsymbolized",
    "3.0 % truncated",
    "nothing dropped",
    "agent 0.91 % of a core",
  ]);
  expect(page.text).toContain("all agents, since start:");
  expect(page.all("[role=group]").map((group) => group.getAttribute("aria-label"))).toEqual([
    "Quality of this profile",
    "Of all agents, since the server started",
  ]);
});

it("tells what was dropped, why, what helps, and leads to the ledger", async () => {
  const drops = [
    { reason: "frame_unnamed", count: 5 },
    { reason: "window_full", count: 4000 },
    { reason: "spool_full", count: 2 },
  ];
  const store = await barOf("?v=1&live=0", { ...STATUS, drops });
  await page.click("4.00 k samples, 2 profiles dropped");
  const panel = page.root.querySelector("[role=dialog]");
  expect(panel?.getAttribute("aria-label")).toBe("What was dropped");
  expect(panel && textOf(panel)).toContain("4.00 k samples: window full. Raise agent.window_samples.");
  expect(panel && textOf(panel)).toContain("2 profiles: spool full. The server’s log says more.");
  expect(panel && textOf(panel)).toContain("1 reason costs detail only.");
  await page.click("The whole ledger, on Status");
  expect(store.view.value.screen).toBe("status");
  expect(page.text).toBe("");
});

it("does not call nothing what nobody tells", async () => {
  const { drops: _, ...withoutLedger } = STATUS;
  await barOf("?v=1&live=0", withoutLedger);
  expect(page.text).toContain("drops unknown");
  page.close();
  vi.resetModules();
  page = new RenderedPage("?v=1&live=0");
  page.faults.set("status", 403);
  const store = await import("./store.ts");
  const { QualityBar } = await import("./quality-bar.tsx");
  store.start();
  await page.show(<QualityBar />);
  await page.click("drops unknown");
  expect(page.text).toContain("The server does not tell what was lost. No.");
});

it("stands on a comparison, too, and tells the samples of both sides", async () => {
  page = new RenderedPage("?v=1&live=0&screen=compare");
  page.answers.set("status", () => STATUS);
  const side = { query: "{}", from: 0, to: 1000, total: 3 };
  const values = { before_total: [3], before_self: [3], after_total: [4], after_self: [4] };
  page.answers.set("diff", () => ({
    before: { ...side, samples: 900 },
    after: { ...side, samples: 20_000 },
    functions: [],
    tree: { nodes: 1, pruned: 0, frames: [{ name: "total", file: "", mapping: "", kind: "native", line: 0 }], frame: [0], depth: [0], subtree_end: [1], ...values },
  }));
  const store = await import("./store.ts");
  const { diffSource } = await import("./compare/diff-source.ts");
  const { QualityBar } = await import("./quality-bar.tsx");
  store.pictureSource.value = diffSource;
  store.start();
  await page.show(<QualityBar />);
  expect(page.byTestId("quality-bar")?.getAttribute("aria-label")).toBe("Quality of this comparison");
  expect(page.byTestId("quality-samples")?.textContent).toBe("900 → 20.0 k samples · 10 ± 2.0 %");
  expect(page.byTestId("quality-dropped")?.textContent).toBe("nothing dropped");
  await page.click("900 → 20.0 k samples · 10 ± 2.0 %");
  expect(page.text).toContain("the fewer of both sides");
});

it("says nothing where there is no picture", async () => {
  await barOf("?v=1&live=0&screen=services", STATUS);
  expect(page.text).toBe("");
});
