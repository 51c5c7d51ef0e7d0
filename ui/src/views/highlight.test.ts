import { effect } from "@preact/signals";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { TreeSpec } from "../../bench/generate.ts";
import { NONE, ROOT } from "../model/flame-tree.ts";
import { pathHash } from "../model/path-hash.ts";
import { FakePage } from "./fake-page.ts";

const named = (name: string, self: number, children: TreeSpec[] = []): TreeSpec => ({ frame: { name }, self, children });
const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

async function pageOf(...children: TreeSpec[]) {
  const page = new FakePage("?v=1&live=0");
  page.tree = named("total", 0, children);
  const store = await import("./store.ts");
  const highlight = await import("./highlight.ts");
  store.start();
  await settled();
  const show = async (...next: TreeSpec[]): Promise<void> => {
    page.tree = named("total", 0, next);
    store.refresh();
    await settled();
  };
  const zoomedName = (): string | undefined => store.flameTree.value?.nameOf(highlight.zoomedNode.value);
  return { page, store, highlight, show, zoomedName };
}

beforeEach(() => {
  vi.resetModules();
  vi.useFakeTimers();
});

afterEach(() => {
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("the zoom is the same function in the next tree, without any picture on the screen", async () => {
  const { store, highlight, show, zoomedName } = await pageOf(named("a", 5), named("b", 3));
  const tree = store.flameTree.value;
  store.update({ zoom: tree ? pathHash(tree, 2) : "" });
  expect(zoomedName()).toBe("b");
  await show(named("c", 9), named("b", 8), named("a", 1));
  expect(zoomedName()).toBe("b");
  expect(highlight.isZoomLost.value).toBe(false);
  await show(named("a", 1));
  expect(highlight.zoomedNode.value).toBe(ROOT);
  expect(highlight.isZoomLost.value).toBe(true);
});

it("a selection does not outlive its tree", async () => {
  const { highlight, show } = await pageOf(named("a", 5), named("b", 3));
  highlight.selectedNode.value = 2;
  await show(named("c", 9), named("a", 5));
  expect(highlight.selectedNode.value).toBe(NONE);
  expect(highlight.describedNode.value).toBe(ROOT);
});

it("the beginning of a load changes nothing that is searched or zoomed", async () => {
  const { page, store, highlight } = await pageOf(named("a", 5));
  store.update({ search: "a" });
  let runs = 0;
  const stop = effect(() => {
    void highlight.highlight.value;
    void highlight.zoomedNode.value;
    runs++;
  });
  page.faults.set("flamegraph", "slow");
  store.refresh();
  store.update({ descending: false });
  await settled();
  expect(store.flame.value.loading).toBe(true);
  expect(runs).toBe(1);
  stop();
});

it("an expression that takes too long filters nothing", async () => {
  const { store, highlight } = await pageOf(...Array.from({ length: 200 }, (_, index) => named(`a${index}`, 1)));
  store.update({ search: "a1" });
  expect(highlight.highlight.value?.total).toBe(111);
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => (now += 300));
  store.update({ search: "a2" });
  expect(highlight.isSearchTooSlow.value).toBe(true);
  expect(highlight.highlight.value).toBeUndefined();
  expect(highlight.tableFilter.value).toBeUndefined();
});
