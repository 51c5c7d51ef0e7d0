import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FakePage } from "./fake-page.ts";

const FULL = { frame: { name: "total" }, self: 1 };
const EMPTY = { ...FULL, self: 0 };
let page: FakePage;

async function started(search = "") {
  page = new FakePage(search);
  const store = await import("./store.ts");
  store.start();
  return store;
}

const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

beforeEach(() => {
  vi.resetModules();
  vi.useFakeTimers();
});

afterEach(() => {
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("show all", () => {
  it("asks once for every node, and no more after the next live refresh", async () => {
    const store = await started();
    await settled();
    store.loadAllNodes();
    await settled();
    expect(page.asked("flamegraph").map((url) => url.searchParams.get("max_nodes"))).toEqual([null, "0"]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(page.asked("flamegraph").map((url) => url.searchParams.get("max_nodes"))).toEqual([null, "0", null]);
  });

  it("ends with the selection it was asked for", async () => {
    const store = await started("?v=1&live=0");
    await settled();
    store.loadAllNodes();
    await settled();
    store.refresh();
    store.selectService("a");
    await settled();
    const asked = page.asked("flamegraph").map((url) => url.searchParams.get("max_nodes"));
    expect(asked).toEqual([null, "0", "0", null]);
  });
});

describe("another selection", () => {
  it("marks the answers of the one before until its own are there", async () => {
    const store = await started();
    await settled();
    page.faults.set("flamegraph", "slow");
    store.selectService("a");
    await settled();
    expect(store.flame.value).toMatchObject({ isStale: true, loading: true });
    expect(store.isStale.value).toBe(true);
    // The list of services does not depend on the service.
    expect(store.services.value).toMatchObject({ isStale: false, loading: false });
  });

  it("shows none of the old figures when the server is away", async () => {
    const store = await started();
    await settled();
    for (const path of ["flamegraph", "series", "top"]) page.faults.set(path, "away");
    store.selectService("a");
    await settled();
    expect([store.flame, store.series, store.top].map(({ value }) => value.data)).toEqual([undefined, undefined, undefined]);
  });

  it("of times that are none ends what is under way", async () => {
    const store = await started();
    page.faults.set("flamegraph", "slow");
    store.refresh();
    store.update({ from: "yesterday" });
    page.faults.clear();
    await settled();
    expect(store.flame.value).toMatchObject({ data: undefined, error: { code: "bad_time" } });
    expect(store.services.value).toMatchObject({ data: undefined, error: { code: "bad_time" } });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(page.asked("services")).toHaveLength(2);
  });

  it("is not made by rewriting a selector that does not parse", async () => {
    const store = await started("?v=1&query={broken");
    store.selectService("a");
    expect(store.view.value.query).toBe("{broken");
    expect(page.asked("services")[0].searchParams.get("query")).toBe("{broken");
  });
});

it("averages over what was observed, from the first profile of the host to the last delivery", async () => {
  const store = await started();
  page.answers.set("services", ({ to }) => ({ first_ms: to - 600_000 }));
  page.answers.set("series", ({ to }) => ({ series: [{ labels: {}, points: [[to - 35_000, 1]] }] }));
  store.refresh();
  await settled();
  expect(store.observed.value?.seconds).toBe(585);
  // One service of the host, which began later and was idle before: nothing else has been observed.
  page.answers.set("series", ({ to }) => ({ series: [{ labels: {}, points: [[to - 25_000, 1]] }] }));
  store.selectService("a");
  await settled();
  expect(store.observed.value?.seconds).toBe(595);
});

describe("the next look", () => {
  it("waits for the slowest answer", async () => {
    const store = await started();
    page.faults.set("services", "slow");
    store.refresh();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(page.asked("flamegraph")).toHaveLength(2);
  });

  it("does not repeat what was refused", async () => {
    page = new FakePage("?v=1");
    for (const path of ["flamegraph", "services", "series", "top"]) page.faults.set(path, 400);
    const { start } = await import("./store.ts");
    start();
    await vi.advanceTimersByTimeAsync(120_000);
    expect(page.asked("flamegraph")).toHaveLength(1);
  });

  it("comes soon while the server is away or has nothing", async () => {
    const store = await started();
    page.tree = EMPTY;
    page.faults.set("top", "away");
    store.refresh();
    await vi.advanceTimersByTimeAsync(2_000);
    page.faults.clear();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(page.asked("flamegraph")).toHaveLength(4);
    page.tree = FULL;
    await vi.advanceTimersByTimeAsync(2_000);
    await vi.advanceTimersByTimeAsync(9_000);
    expect(page.asked("flamegraph")).toHaveLength(5);
  });

  it("that a hidden page has missed is made up for, of a fixed range too", async () => {
    const store = await started("?v=1&from=1795255200000&to=1795258800000");
    page.faults.set("flamegraph", "away");
    store.refresh();
    await settled();
    page.visibilityState = "hidden";
    await vi.advanceTimersByTimeAsync(60_000);
    const before = page.asked("flamegraph").length;
    page.faults.clear();
    page.show("visible");
    await settled();
    expect(page.asked("flamegraph")).toHaveLength(before + 1);
    expect(store.flame.value.error).toBeUndefined();
    page.show("hidden");
    page.show("visible");
    await settled();
    expect(page.asked("flamegraph")).toHaveLength(before + 1);
  });
});
