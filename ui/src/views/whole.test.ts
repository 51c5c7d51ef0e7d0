import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { FakePage } from "./fake-page.ts";

beforeEach(() => {
  vi.resetModules();
  vi.useFakeTimers();
});

afterEach(() => {
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("divides nothing by the whole of another range", async () => {
  const page = new FakePage(`?v=1&filters=${encodeURIComponent("focus=a")}`);
  page.answers.set("flamegraph", () => ({ total: 4 }));
  const store = await import("./store.ts");
  const { followWhole, shownTotal, wholeTotal } = await import("./whole.ts");
  store.start();
  followWhole();
  await vi.advanceTimersByTimeAsync(0);
  expect([shownTotal.value, wholeTotal.value]).toEqual([1, 4]);
  page.faults.set("flamegraph", "slow");
  store.refresh();
  expect([shownTotal.value, wholeTotal.value]).toEqual([1, 4]);
  store.update({ from: "now-3h" });
  expect([shownTotal.value, wholeTotal.value]).toEqual([undefined, undefined]);
  page.faults.clear();
  page.answers.set("flamegraph", () => ({ total: 12 }));
  store.refresh();
  await vi.advanceTimersByTimeAsync(0);
  expect([shownTotal.value, wholeTotal.value]).toEqual([1, 12]);
});
