import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { FakePage } from "./fake-page.ts";

const row = (name: string, self: number) => ({ name, file: "", mapping: "", kind: "go", self, total: self });

beforeEach(() => {
  vi.resetModules();
  vi.useFakeTimers();
});

afterEach(() => {
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("the table is copied as it is seen, and not while it is out of date", async () => {
  const page = new FakePage("?v=1&live=0&search=work&sort=name&desc=0");
  page.answers.set("top", () => ({ total: 10, functions: [row("worker", 5), row("idle", 3), row("work", 2)] }));
  const writeText = vi.fn<(text: string) => Promise<void>>(() => Promise.resolve());
  vi.stubGlobal("navigator", { clipboard: { writeText } });
  const store = await import("./store.ts");
  const { copyTable } = await import("./export-menu.tsx");
  const { notice } = await import("./notice.ts");
  store.start();
  await vi.advanceTimersByTimeAsync(0);
  copyTable();
  const [copied] = writeText.mock.calls[0] ?? [];
  expect(copied?.split("\n").slice(2, -1).map((line) => line.split("`")[1])).toEqual(["work", "worker"]);
  page.faults.set("top", "slow");
  store.selectService("a");
  copyTable();
  expect(writeText).toHaveBeenCalledOnce();
  expect(notice.value).toContain("There is no table yet");
});
