// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RenderedPage } from "./rendered-page.ts";

async function palette(search: string) {
  const page = new RenderedPage(search);
  const store = await import("./store.ts");
  const { allCommands } = await import("./commands.ts");
  const run = (title: string): void => {
    const command = allCommands().find((candidate) => candidate.title === title);
    if (!command) throw new Error(`no command ${title}`);
    command.act();
  };
  return { page, store, run };
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

it("compares with the time before; a file, with another one", async () => {
  const { store, run } = await palette("?v=1&live=0");
  run("Compare with the time before");
  expect(store.view.value.screen).toBe("compare");
  store.update({ screen: "profile", file: `${"0".repeat(32)}/a.pb.gz` });
  run("Compare with the time before");
  expect(store.view.value.screen).toBe("files");
});

it("exports from wherever one is", async () => {
  const { page, store, run } = await palette("?v=1&live=0&screen=labels");
  run("Export");
  expect(store.view.value.screen).toBe("profile");
  const opened = vi.fn<() => void>();
  const button = document.createElement("button");
  button.dataset.testid = "export";
  button.addEventListener("click", opened);
  page.root.append(button);
  await page.settle();
  expect(opened).toHaveBeenCalledOnce();
});
