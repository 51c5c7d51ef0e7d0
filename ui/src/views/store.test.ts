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

it("counts both ranges of a comparison from the moment of the refresh", async () => {
  const store = await started("?v=1&live=0&screen=compare&from=now-3h&to=now-2h&base_from=now-2h&base_to=now-1h");
  await vi.advanceTimersByTimeAsync(60_000);
  const { to } = store.range.value;
  expect(store.shownBase.value).toEqual({ from: to, to: to + 3600e3 });
  expect(store.fixedView()).toMatchObject({ to: String(to), baseFrom: String(to), baseTo: String(to + 3600e3) });
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

describe("series by a label", () => {
  it("are asked for alone when only the label changes", async () => {
    const store = await started();
    await settled();
    const pictures = page.asked("flamegraph").length;
    const before = page.asked("series").length;
    store.update({ groupBy: "host" });
    await settled();
    expect(page.asked("series").slice(before).map((url) => url.searchParams.get("group_by"))).toEqual(["host"]);
    expect(page.asked("flamegraph")).toHaveLength(pictures);
  });
});

describe("what only the picture minds", () => {
  it("asks nothing again, neither by a letter of a search nor by an order", async () => {
    const store = await started("?v=1&live=0&fn=main");
    const { followNotes } = await import("./notes.ts");
    const { followChart } = await import("./profile/chart-answer.ts");
    const { followSandwich } = await import("./profile/sandwich-answer.ts");
    const { followSource } = await import("./profile/source-answer.ts");
    const ends = [followNotes(), followChart(), followSandwich(), followSource()];
    await settled();
    for (const path of ["annotations", "labels", "chart", "callers", "source"]) expect(page.asked(path).length, path).toBeGreaterThan(0);
    const before = page.requests.length;
    store.update({ search: "a" });
    store.update({ search: "ab", sortBy: "name", colorBy: "kind", lanes: "worker" });
    await settled();
    expect(page.requests.slice(before).map(({ pathname }) => pathname)).toEqual([]);
    store.update({ pinned: "other" });
    await settled();
    expect(page.requests.slice(before).map(({ pathname }) => pathname)).toEqual(["/api/v1/callers", "/api/v1/source"]);
    ends.forEach((end) => end());
  });

  it("is asked for again by a refresh, of a fixed range too", async () => {
    const store = await started("?v=1&live=0&from=1795255200000&to=1795258800000&fn=main");
    const { followSandwich } = await import("./profile/sandwich-answer.ts");
    const end = followSandwich();
    await settled();
    const before = page.asked("callers").length;
    store.refresh();
    await settled();
    expect(page.asked("callers")).toHaveLength(before + 1);
    end();
  });
});

describe("answers beside the picture", () => {
  it("are of another question in another range, and about another file", async () => {
    const store = await started("?v=1&live=0&fn=main");
    page.answers.set("callers", () => ({ unit: "nanoseconds", callers: null, callees: null }));
    const { followSandwich, sandwich } = await import("./profile/sandwich-answer.ts");
    const end = followSandwich();
    await settled();
    expect(sandwich.value).toMatchObject({ data: { name: "main" }, isStale: false });
    page.faults.set("callers", "slow");
    store.refresh();
    expect(sandwich.value.isStale).toBe(false);
    store.update({ file: "other" });
    expect(sandwich.value.isStale).toBe(true);
    store.update({ file: "" });
    expect(sandwich.value.isStale).toBe(false);
    store.update({ from: "now-2h" });
    expect(sandwich.value.isStale).toBe(true);
    page.faults.set("callers", 400);
    store.refresh();
    await settled();
    expect(sandwich.value).toMatchObject({ data: undefined, error: { code: "refused" } });
    end();
  });

  it("leave no flag of the range before", async () => {
    const store = await started("?v=1&live=0");
    page.answers.set("annotations", ({ to }) => ({ annotations: [{ id: "1", time: to, kind: "note", text: "hot", author: "", labels: {} }] }));
    page.answers.set("labels", () => ({ labels: [] }));
    const { followNotes, markers } = await import("./notes.ts");
    const end = followNotes();
    await settled();
    expect(markers.value).toHaveLength(1);
    page.faults.set("annotations", "slow");
    store.refresh();
    expect(markers.value).toHaveLength(1);
    store.update({ from: "now-2h" });
    expect(markers.value).toHaveLength(0);
    end();
  });
});
