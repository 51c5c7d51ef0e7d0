// For tests: what the page around the store is, as far as the store minds, and a server behind it.

import { vi } from "vitest";
import { encodeTree, type TreeSpec } from "../../bench/generate.ts";
import type { TimeRange } from "../model/time-range.ts";

export class FakePage {
  visibilityState = "visible";
  readonly requests: URL[] = [];
  /** Paths answered by this status, or never, or not at all. */
  readonly faults = new Map<string, number | "slow" | "away">();
  tree: TreeSpec = { frame: { name: "total" }, self: 1 };
  /** What an answer says beside the usual, by path. */
  readonly answers = new Map<string, (range: TimeRange) => object>();
  readonly #listeners = new Map<string, () => void>();

  constructor(search: string) {
    const visibility = (): string => this.visibilityState;
    const listen = (type: string, listener: () => void): void => void this.#listeners.set(type, listener);
    vi.stubGlobal("location", { search, host: "page.test" });
    vi.stubGlobal("window", { addEventListener: listen, history: { pushState: () => undefined, replaceState: () => undefined } });
    vi.stubGlobal("document", {
      baseURI: "http://page.test/",
      addEventListener: listen,
      get visibilityState() {
        return visibility();
      },
    });
    vi.stubGlobal("fetch", (url: string, { signal }: RequestInit) => this.#answer(new URL(url), signal));
  }

  show(visibility: "visible" | "hidden"): void {
    this.visibilityState = visibility;
    this.#listeners.get("visibilitychange")?.();
  }

  asked(path: string): URL[] {
    return this.requests.filter(({ pathname }) => pathname === `/api/v1/${path}`);
  }

  #answer(url: URL, signal: AbortSignal | null | undefined): Promise<Response> {
    this.requests.push(url);
    const path = url.pathname.slice("/api/v1/".length);
    const fault = this.faults.get(path);
    if (fault === "slow")
      return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(new Error("aborted"))));
    if (fault === "away") return Promise.reject(new TypeError("fetch failed"));
    if (fault !== undefined) return Promise.resolve(Response.json({ code: "refused", message: "no" }, { status: fault }));
    const from = Number(url.searchParams.get("from"));
    const to = Number(url.searchParams.get("to"));
    if (path === "flamegraph") return Promise.resolve(new Response(encodeTree(this.tree, { from, to })));
    const lists = { services: [], series: [], functions: [], types: [] };
    const answer = { type: "cpu", unit: "nanoseconds", from, to, step_ms: 20_000, ...lists };
    return Promise.resolve(Response.json({ ...answer, ...this.answers.get(path)?.({ from, to }) }));
  }
}
