// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { FunctionComponent } from "preact";
import { RenderedPage, textOf } from "./rendered-page.ts";

const EMPTY = { frame: { name: "total" }, self: 0 };
const HINT = 'no service_name is "nobody"; near: checkout';

let page: RenderedPage;

async function stateOf(search: string, component: "ProfileState" | "TableState" | "NoServices", prepare: (page: RenderedPage) => void = () => undefined) {
  page = new RenderedPage(`?v=1&live=0${search}`);
  page.treeFor = () => ({ tree: EMPTY, head: { hint: HINT } });
  prepare(page);
  const store = await import("./store.ts");
  const states = await import("./empty-state.tsx");
  const Component: FunctionComponent = states[component];
  store.start();
  await page.show(<Component />);
  return store;
}

const buttons = (): string[] => page.all(".state-actions button").map(textOf);
const command = (): string | undefined => page.root.querySelector("code")?.textContent ?? undefined;

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

it("of a narrowed profile says why, has a way out of each, and the same question for a terminal", async () => {
  const query = encodeURIComponent('{service_name="nobody"}');
  const store = await stateOf(`&query=${query}&filters=hide%3Da&path=main`, "ProfileState");
  expect(page.root.querySelector("h2")?.textContent).toBe("No profile in this range");
  expect(page.text).toContain('No service_name is "nobody"; near: checkout.');
  expect(buttons()).toEqual(["All callers", "Clear filters", "All services", "Last 24 hours", "Look again"]);
  expect(command()).toMatch(/^candela query top --server http:\/\/\S+ --query '\{service_name="nobody"\}' .*--hide a --path main$/);
  await page.click("All callers");
  expect(store.view.value).toMatchObject({ path: "", filters: "hide=a" });
  await page.click("Clear filters");
  await page.click("All services");
  expect(store.view.value).toMatchObject({ query: "{}", filters: "" });
  await page.click("Last 24 hours");
  expect(store.view.value).toMatchObject({ from: "now-1d", to: "now" });
  expect(buttons()).toEqual(["Look again"]);
  const asked = page.asked("flamegraph").length;
  await page.click("Look again");
  expect(page.asked("flamegraph")).toHaveLength(asked + 1);
});

it("of everything says what is missing on the host", async () => {
  await stateOf("", "ProfileState");
  expect(command()).toBe("candela doctor");
});

it("of a refusal has the server's words, and a way back", async () => {
  const store = await stateOf("&query=%7Bbroken", "ProfileState", ({ faults }) => faults.set("flamegraph", 400));
  expect(page.root.querySelector("[role=alert]")).not.toBeNull();
  expect(page.text).toContain("No.");
  await page.click("Clear the selector");
  expect(store.view.value.query).toBe("{}");
});

it("of a table by itself has what helps, and beside an empty picture only says so", async () => {
  await stateOf("&view=table&filters=focus%3Da", "TableState");
  expect(page.text).toContain("No functions in this range");
  expect(buttons()).toContain("Clear filters");
  expect(command()).toContain("candela query top");
  page.close();
  vi.resetModules();
  await stateOf("&filters=focus%3Da", "TableState");
  expect(page.text).toBe("No functions in this range.");
});

it("of the services has a longer range and a command", async () => {
  const store = await stateOf("", "NoServices");
  expect(page.text).toContain("No service has sent anything in this range");
  expect(command()).toBe("candela doctor");
  await page.click("Last 24 hours");
  expect(store.view.value.from).toBe("now-1d");
});
