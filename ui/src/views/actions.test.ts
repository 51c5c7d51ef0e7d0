import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { TreeSpec } from "../../bench/generate.ts";
import { FakePage } from "./fake-page.ts";

const named = (name: string, self: number, children: TreeSpec[] = []): TreeSpec => ({ frame: { name }, self, children });

const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);
const lastAsked = ({ page }: { page: FakePage }): URLSearchParams | undefined => page.asked("flamegraph").at(-1)?.searchParams;

/** Without a picture on the screen. */
async function pageWith(panes: string, prepare: (page: FakePage) => void = () => undefined) {
  const page = new FakePage(`?v=1&live=0&view=${panes}`);
  page.tree = named("total", 0, [named("main", 1, [named("work", 5, [named("inner", 2)])]), named("idle", 3, [named("inner", 9)])]);
  prepare(page);
  const store = await import("./store.ts");
  const highlight = await import("./highlight.ts");
  const actions = await import("./actions.ts");
  store.start();
  await settled();
  const nodeOf = (name: string): number => [...Array(store.flameTree.value?.length).keys()].find((node) => store.flameTree.value?.nameOf(node) === name) ?? -1;
  const nameOf = (node: number): string | undefined => store.flameTree.value?.nameOf(node);
  return { page, store, highlight, actions, nodeOf, zoomed: () => nameOf(highlight.zoomedNode.value), selected: () => nameOf(highlight.selectedNode.value) };
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

it.each(["tree", "chart", "table"])("the zoom goes in and up while the pane is %s, which stays", async (panes) => {
  const { store, actions, nodeOf, zoomed } = await pageWith(panes);
  const { letGo } = await import("./flame-keys.ts");
  actions.zoomTo(nodeOf("work"));
  expect(zoomed()).toBe("work");
  letGo();
  expect(zoomed()).toBe("main");
  letGo();
  letGo();
  expect(zoomed()).toBe("total");
  expect(store.view.value.panes).toBe(panes);
});

it("who asks for the heaviest place gets what shows it", async () => {
  const table = await pageWith("table");
  table.store.update({ search: "inner" });
  table.actions.zoomToHighlight();
  expect(table.store.view.value.panes).toBe("both");
  vi.resetModules();
  const tree = await pageWith("tree");
  tree.store.update({ search: "inner" });
  tree.actions.zoomToHighlight();
  expect(tree.store.view.value.panes).toBe("tree");
  expect(tree.zoomed()).toBe("inner");
});

it("matches are stepped through in the tree, too", async () => {
  const { store, actions, highlight, selected, zoomed } = await pageWith("tree");
  store.update({ search: "inner|idle" });
  const steps = [1, 1, 1, -1] as const;
  const seen = steps.map((direction) => {
    actions.stepHighlight(direction);
    return highlight.selectedNode.value;
  });
  expect(new Set(seen).size).toBe(2);
  expect(seen[0]).toBe(seen[2]);
  expect(seen[1]).toBe(seen[3]);
  expect(selected()).toMatch(/inner|idle/);
  expect(zoomed()).toBe("total");
});

describe("what the server has folded", () => {
  const whole = named("total", 0, [named("main", 1, [named("work", 5, [named("rare", 1), named("tiny", 1)])])]);
  const folded: TreeSpec = named("total", 0, [named("main", 1, [named("work", 5, [{ frame: { name: "other", kind: "other" }, self: 2 }])])]);
  /** All of it for who wants all nodes, or a subtree by itself. */
  const prunes = (page: FakePage): void => {
    page.treeFor = (asked) => (asked.get("max_nodes") === "0" || asked.has("path") ? { tree: whole } : { tree: folded, head: { pruned: 2 } });
  };

  it("is asked for when the table wants to go there, and is focused on", async () => {
    const at = await pageWith("table", prunes);
    at.store.update({ pinned: "rare" });
    at.actions.zoomToHighlight();
    expect(lastAsked(at)?.get("max_nodes")).toBe("0");
    await settled();
    expect(at.store.view.value).toMatchObject({ path: "main\nwork\nrare", panes: "both" });
    expect(lastAsked(at)?.getAll("path")).toEqual(["main", "work", "rare"]);
    expect(at.zoomed()).toBe("rare");
  });

  it("is looked through by a search, which may find nothing there either", async () => {
    const at = await pageWith("both", prunes);
    const { notice } = await import("./notice.ts");
    at.store.update({ search: "nowhere" });
    at.actions.zoomToHighlight();
    await settled();
    expect(notice.value).toBe("Nothing that was folded has it either");
    expect(at.store.view.value.path).toBe("");
    // Now there is no more to ask for.
    at.actions.zoomToHighlight();
    expect(at.page.asked("flamegraph")).toHaveLength(2);
  });

  it("is not gone to once something else is asked", async () => {
    const at = await pageWith("table", prunes);
    at.store.update({ pinned: "rare" });
    at.actions.zoomToHighlight();
    at.store.update({ from: "now-2h" });
    await settled();
    expect(at.store.view.value.path).toBe("");
    at.store.loadAllNodes();
    await settled();
    expect(at.store.view.value.path).toBe("");
  });

  it("is opened by what it is a part of, and the tree stays", async () => {
    const at = await pageWith("tree", prunes);
    const { notice } = await import("./notice.ts");
    at.actions.focusOn(at.nodeOf("other"));
    expect(at.store.view.value).toMatchObject({ path: "main\nwork", panes: "tree" });
    expect(notice.value).toContain("focused on work");
  });

  it("of what is focused on already is asked for as all nodes", async () => {
    const at = await pageWith("tree", (page) => {
      page.treeFor = (asked) => (asked.get("max_nodes") === "0" ? { tree: whole } : { tree: folded, head: { pruned: 2 } });
    });
    at.store.update({ path: "main\nwork" });
    await settled();
    at.actions.focusOn(at.nodeOf("other"));
    await settled();
    expect(at.store.view.value.path).toBe("main\nwork");
    expect(lastAsked(at)?.get("max_nodes")).toBe("0");
    expect(at.nodeOf("rare")).toBeGreaterThan(0);
  });

  it("stays folded in a page of one file, which says so", async () => {
    const at = await pageWith("table", prunes);
    const { notice } = await import("./notice.ts");
    at.store.answerWith(at.store.api);
    at.store.update({ pinned: "rare" });
    at.actions.zoomToHighlight();
    expect(notice.value).toContain("This page holds no more");
    expect(at.page.asked("flamegraph")).toHaveLength(1);
  });
});
