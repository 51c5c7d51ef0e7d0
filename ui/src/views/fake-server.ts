// For tests: a server as far as the store minds, in place of `fetch`.

import { vi } from "vitest";
import { encodeTree, type TreeSpec } from "../../bench/generate.ts";
import type { TimeRange } from "../model/time-range.ts";

export class FakeServer {
  readonly requests: URL[] = [];
  /** Paths answered by this status, or never, or not at all. */
  readonly faults = new Map<string, number | "slow" | "away">();
  tree: TreeSpec = { frame: { name: "total" }, self: 1 };
  /** What an answer says beside the usual, by path; or all of the answer. */
  readonly answers = new Map<string, (range: TimeRange, init: RequestInit) => object>();
  /** The tree by what is asked, and what its head says beside the usual. */
  treeFor: (parameters: URLSearchParams) => { tree: TreeSpec; head?: Record<string, unknown> } = () => ({ tree: this.tree });

  constructor() {
    vi.stubGlobal("fetch", (url: string, init: RequestInit) => this.#answer(new URL(url), init));
  }

  asked(path: string): URL[] {
    return this.requests.filter(({ pathname }) => pathname === `/api/v1/${path}`);
  }

  #answer(url: URL, init: RequestInit): Promise<Response> {
    this.requests.push(url);
    const path = url.pathname.slice("/api/v1/".length);
    const fault = this.faults.get(path);
    if (fault === "slow")
      return new Promise((_, reject) => init.signal?.addEventListener("abort", () => reject(new Error("aborted"))));
    if (fault === "away") return Promise.reject(new TypeError("fetch failed"));
    if (fault !== undefined) return Promise.resolve(Response.json({ code: "refused", message: "no" }, { status: fault }));
    const from = Number(url.searchParams.get("from"));
    const to = Number(url.searchParams.get("to"));
    if (path === "flamegraph" && url.searchParams.get("format") !== "json") {
      const { tree, head } = this.treeFor(url.searchParams);
      return Promise.resolve(new Response(encodeTree(tree, { from, to, ...head })));
    }
    const lists = { services: [], series: [], functions: [], types: [] };
    const answer = { type: "cpu", unit: "nanoseconds", from, to, step_ms: 20_000, ...lists };
    const said = this.answers.get(path)?.({ from, to }, init);
    return Promise.resolve(said instanceof Response ? said : Response.json({ ...answer, ...said }));
  }
}
