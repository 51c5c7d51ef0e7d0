// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { TreeSpec } from "../../../bench/generate.ts";
import { RenderedPage, textOf } from "../rendered-page.ts";

const named = (name: string, self: number, children: TreeSpec[] = []): TreeSpec => ({ frame: { name }, self, children });
const OTHER: TreeSpec = { frame: { name: "other", kind: "other" }, self: 2 };

let page: RenderedPage;

async function shownTree() {
  page = new RenderedPage("?v=1&live=0&view=tree");
  page.treeFor = () => ({ tree: named("total", 0, [named("main", 1, [named("work", 5, [OTHER])])]), head: { pruned: 2 } });
  const store = await import("../store.ts");
  const { TreePane } = await import("./tree-pane.tsx");
  const { FrameMenu } = await import("../frame-menu.tsx");
  store.start();
  await page.show(
    <>
      <TreePane />
      <FrameMenu />
    </>,
  );
  const grid = page.byTestId("tree");
  if (!grid) throw new Error("no tree");
  const row = (name: string): HTMLElement => {
    const found = page.all("[data-testid=tree-row]").find(({ dataset }) => dataset.function === name);
    if (!found) throw new Error(`no row ${name}`);
    return found;
  };
  return { store, grid, row };
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

it("focuses on a row by its key, and stays", async () => {
  const { store, grid, row } = await shownTree();
  row("work").click();
  await page.press(grid, "f");
  expect(store.view.value).toMatchObject({ path: "main\nwork", panes: "tree" });
});

it("opens what is folded by what it is a part of, with a word about it", async () => {
  const { store, grid, row } = await shownTree();
  const { notice } = await import("../notice.ts");
  await page.press(grid, "*");
  row("other").click();
  await page.press(grid, "Enter");
  expect(store.view.value.path).toBe("main\nwork");
  expect(notice.value).toContain("focused on work");
});

it("has the menu of a frame at each row, which gives the focus back", async () => {
  const { store, grid, row } = await shownTree();
  row("work").dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true, clientX: 20, clientY: 20 }));
  await page.settle();
  const menu = page.root.querySelector("[role=menu]");
  expect(menu?.getAttribute("aria-label")).toBe("work");
  expect([...(menu?.querySelectorAll("[role=menuitem]") ?? [])].map(textOf)).toContain("Focus: ask for all below itf");
  await page.press(document.body, "f");
  expect(store.view.value.path).toBe("main\nwork");
  expect(document.activeElement).toBe(grid);
  expect(page.root.querySelector("[role=menu]")).toBeNull();
});

it("has another menu at what is folded: it is no function", async () => {
  const { grid, row } = await shownTree();
  await page.press(grid, "*");
  row("other").dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true }));
  await page.settle();
  expect(page.all("[role=menuitem]").map(textOf)).toEqual(["Zoom to itEnter", "Open it: ask for all below workf"]);
});
