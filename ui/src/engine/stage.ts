// The elements the picture stands on: a scroller as high as what is seen, a spacer as high as all rows, and two canvases that stay
// in sight. The canvases are never larger than the window, however deep the tree.

import type { Orientation } from "../state/schema.ts";
import { TextFitter } from "./text.ts";

export interface FlameElements {
  /** Scrolls vertically; as wide as the picture. */
  scroller: HTMLElement;
  /** As high as all rows together; inside the scroller. */
  spacer: HTMLElement;
  /** Sticks to the top of the scroller, as large as what is visible. */
  picture: HTMLCanvasElement;
  outlines: HTMLCanvasElement;
}

export class Stage {
  readonly scroller: HTMLElement;
  readonly picture: CanvasRenderingContext2D;
  readonly outlines: CanvasRenderingContext2D;
  orientation: Orientation = "icicle";
  /** CSS pixels of the visible part. */
  width = 0;
  height = 0;
  /** Device pixels a CSS pixel, as the canvases were made for. */
  pixelRatio = 1;
  readonly #elements: FlameElements;
  readonly #resized: () => void;
  readonly #resizes: ResizeObserver;
  readonly #unlisten = new AbortController();
  /** As of the last scroll: when the scroller is resized, the browser moves its position before anybody is told. */
  #lastFromRoot = 0;

  constructor(elements: FlameElements, resized: () => void) {
    this.#elements = elements;
    this.#resized = resized;
    this.scroller = elements.scroller;
    this.picture = contextOf(elements.picture);
    this.outlines = contextOf(elements.outlines);
    this.#measure();
    this.#resizes = new ResizeObserver(() => this.#remeasure());
    this.#resizes.observe(elements.scroller);
    this.on("scroll", () => this.#scrolled());
    this.#watchPixelRatio();
  }

  destroy(): void {
    this.#resizes.disconnect();
    this.#unlisten.abort();
  }

  /** Listens to the scroller until the stage is destroyed. */
  on<K extends keyof HTMLElementEventMap>(type: K, handler: (event: HTMLElementEventMap[K]) => void, passive: boolean = true): void {
    this.scroller.addEventListener(type, handler, { signal: this.#unlisten.signal, passive });
  }

  fitterFor(font: string): TextFitter {
    this.picture.font = font;
    this.picture.fontKerning = "none";
    return new TextFitter((text) => this.picture.measureText(text).width);
  }

  get origin(): DOMRect {
    return this.#elements.picture.getBoundingClientRect();
  }

  /** Makes room for rows of this height together, in CSS pixels. */
  makeRoom(height: number): void {
    const fromRoot = this.scrollFromRoot;
    this.#elements.spacer.style.height = `${Math.max(this.height, height)}px`;
    this.#keepAt(fromRoot);
  }

  /** Scroll position counted from the root, whichever way up. */
  get scrollFromRoot(): number {
    const { scrollTop } = this.scroller;
    return this.orientation === "icicle" ? scrollTop : this.#scrollRange - scrollTop;
  }

  scrollTo(fromRoot: number, smooth: boolean): void {
    const top = this.orientation === "icicle" ? fromRoot : this.#scrollRange - fromRoot;
    this.scroller.scrollTo({ top: Math.max(0, top), behavior: smooth ? "smooth" : "instant" });
    // What was asked for: read back from a scroller of another size than was measured, it would be another place.
    if (!smooth) this.#lastFromRoot = Math.max(0, Math.min(fromRoot, this.#scrollRange));
  }

  #scrolled(): void {
    const isMeasured = this.scroller.clientHeight === this.height;
    if (isMeasured) this.#lastFromRoot = this.scrollFromRoot;
  }

  /** The browser counts from the top: with the root at the bottom, every change of height would shift the picture. */
  #keepAt(fromRoot: number): void {
    if (this.orientation === "flame") this.scrollTo(fromRoot, false);
  }

  #remeasure(): void {
    const fromRoot = this.#lastFromRoot;
    this.#measure();
    this.#keepAt(fromRoot);
    this.#resized();
  }

  /** A window moved to another screen keeps its size: only the media query tells. It holds for one ratio. */
  #watchPixelRatio(): void {
    const { signal } = this.#unlisten;
    if (signal.aborted) return;
    matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener(
      "change",
      () => {
        if (signal.aborted) return;
        this.#remeasure();
        this.#watchPixelRatio();
      },
      { once: true, signal },
    );
  }

  get #scrollRange(): number {
    return Math.max(0, this.#elements.spacer.offsetHeight - this.height);
  }

  /** Resizing blanks a canvas: the owner draws again in the same frame. */
  #measure(): void {
    this.width = this.scroller.clientWidth;
    this.height = this.scroller.clientHeight;
    this.pixelRatio = devicePixelRatio;
    for (const canvas of [this.#elements.picture, this.#elements.outlines]) {
      canvas.width = Math.max(1, Math.round(this.width * this.pixelRatio));
      canvas.height = Math.max(1, Math.round(this.height * this.pixelRatio));
      canvas.style.width = `${this.width}px`;
      canvas.style.height = `${this.height}px`;
    }
  }
}

function contextOf(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser gives no 2D canvas");
  return context;
}
