// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RenderedPage, textOf } from "../rendered-page.ts";

let page: RenderedPage;

async function chipsOf(filters: string, fault?: number) {
  page = new RenderedPage(`?v=1&live=0&filters=${encodeURIComponent(filters)}`);
  page.tree = { frame: { name: "total" }, self: 40 };
  page.answers.set("flamegraph", () => ({ total: 160 }));
  if (fault !== undefined) page.faults.set("flamegraph", fault);
  const store = await import("../store.ts");
  const { FilterChips } = await import("./filter-chips.tsx");
  store.start();
  await page.show(<FilterChips />);
  return store;
}

/** Types, and ends it with Enter. */
async function enter(field: HTMLElement | null, text: string): Promise<void> {
  if (!(field instanceof HTMLInputElement)) throw new Error("no field");
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await page.settle();
  await page.press(field, "Enter");
}

const chips = (): string[] => page.all("[data-testid=filter-chip]").map(textOf);

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

it("shows the filters in their order, and of what the rest is a part", async () => {
  await chipsOf("focus=pkg:^net/\n!hide=kind:kernel");
  expect(chips()).toEqual(["only stacks withpkg:^net/", "hide frameskind:kernel"]);
  expect(page.all(".filter-kind").map((kind) => kind.getAttribute("aria-pressed"))).toEqual(["true", "false"]);
  expect(page.byTestId("filters-share")?.textContent).toBe("shown: 25.0 % of all, 40.0 ns of 160 ns");
  for (const prefix of ["fn:", "file:", "line:", "pkg:", "bin:", "kind:"])
    expect(page.byTestId("filter-input")?.getAttribute("placeholder")).toContain(prefix);
});

it("switches one off, takes one away, and lets go of all", async () => {
  const store = await chipsOf("focus=a\nhide=b\nignore=c");
  await page.click("only stacks with");
  expect(store.view.value.filters).toBe("!focus=a\nhide=b\nignore=c");
  await page.click("Remove the filter hide b");
  expect(store.view.value.filters).toBe("!focus=a\nignore=c");
  expect(chips()).toHaveLength(2);
  await page.click("clear all");
  expect(store.view.value.filters).toBe("");
  expect(chips()).toEqual([]);
});

it("changes, moves and adds with the keyboard", async () => {
  const store = await chipsOf("focus=a\nhide=b");
  await page.press(page.button("b"), "ArrowLeft", { altKey: true });
  expect(store.view.value.filters).toBe("hide=b\nfocus=a");
  await page.click("a");
  await enter(page.byTestId("filter-edit"), "aa");
  expect(store.view.value.filters).toBe("hide=b\nfocus=aa");
  await enter(page.byTestId("filter-input"), " line:main.c:12 ");
  expect(store.view.value.filters).toBe("hide=b\nfocus=aa\nfocus=line:main.c:12");
});

it("says what the server does not take", async () => {
  await chipsOf("focus=a(", 400);
  expect(page.root.querySelector("[role=alert]")?.textContent).toBe("no");
});
