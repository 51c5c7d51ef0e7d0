// Elements for tests without a browser: sizes, scrolling and events as the engine needs them, and canvases that take any call.

import type { FlameElements } from "./stage.ts";

export class FakeScroller {
  clientWidth = 800;
  clientHeight = 400;
  #top = 0;
  readonly #listeners = new Map<string, ((event: unknown) => void)[]>();
  readonly #contentHeight: () => number;

  constructor(contentHeight: () => number) {
    this.#contentHeight = contentHeight;
  }

  get scrollTop(): number {
    // Clamped at once by a change of size, as by a browser; the event comes later.
    this.#top = Math.max(0, Math.min(this.#top, this.#contentHeight() - this.clientHeight));
    return this.#top;
  }

  scrollTo({ top }: { top: number }): void {
    this.#top = top;
    this.emit("scroll");
  }

  addEventListener(type: string, listener: (event: unknown) => void): void {
    this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener]);
  }

  emit(type: string, event: unknown = {}): void {
    for (const listener of this.#listeners.get(type) ?? []) listener(event);
  }
}

export function fakeElements(): { elements: FlameElements; scroller: FakeScroller } {
  const style = { height: "0px" };
  const spacer = {
    style,
    get offsetHeight() {
      return Number.parseFloat(style.height);
    },
  };
  const scroller = new FakeScroller(() => spacer.offsetHeight);
  const elements = { scroller, spacer, picture: fakeCanvas(), outlines: fakeCanvas() };
  return { elements: elements as unknown as FlameElements, scroller };
}

function fakeCanvas(): object {
  const context = new Proxy(
    {},
    { get: (_, name) => (name === "measureText" ? () => ({ width: 7 }) : () => undefined), set: () => true },
  );
  return {
    width: 0,
    height: 0,
    style: {},
    getContext: () => context,
    getBoundingClientRect: () => ({ x: 0, y: 0 }),
  };
}
