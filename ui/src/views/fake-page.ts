// For tests: what the page around the store is, as far as the store minds, and a server behind it.

import { vi } from "vitest";
import { FakeServer } from "./fake-server.ts";

export class FakePage extends FakeServer {
  visibilityState = "visible";
  readonly #listeners = new Map<string, () => void>();

  constructor(search: string) {
    super();
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
  }

  show(visibility: "visible" | "hidden"): void {
    this.visibilityState = visibility;
    this.#listeners.get("visibilitychange")?.();
  }
}
