// The elements the picture stands on: a scroller as high as what is seen, a spacer as high as all rows, and two canvases that stay
// in sight. The canvases are never larger than the window, however deep the tree.

import type { Orientation } from "../state/schema.ts";

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
  readonly #elements: FlameElements;
  readonly #resizes: ResizeObserver;

  constructor(elements: FlameElements, resized: () => void) {
    this.#elements = elements;
    this.scroller = elements.scroller;
    this.picture = contextOf(elements.picture);
    this.outlines = contextOf(elements.outlines);
    this.#measure();
    this.#resizes = new ResizeObserver(() => {
      this.#measure();
      resized();
    });
    this.#resizes.observe(elements.scroller);
  }

  destroy(): void {
    this.#resizes.disconnect();
  }

  get origin(): DOMRect {
    return this.#elements.picture.getBoundingClientRect();
  }

  /** Makes room for rows of this height together, in CSS pixels. */
  makeRoom(height: number): void {
    this.#elements.spacer.style.height = `${Math.max(this.height, height)}px`;
  }

  /** Scroll position counted from the root, whichever way up. */
  get scrollFromRoot(): number {
    const { scrollTop } = this.scroller;
    return this.orientation === "icicle" ? scrollTop : this.#scrollRange - scrollTop;
  }

  scrollTo(fromRoot: number, smooth: boolean): void {
    const top = this.orientation === "icicle" ? fromRoot : this.#scrollRange - fromRoot;
    this.scroller.scrollTo({ top: Math.max(0, top), behavior: smooth ? "smooth" : "instant" });
  }

  get #scrollRange(): number {
    return Math.max(0, this.#elements.spacer.offsetHeight - this.height);
  }

  /** Resizing blanks a canvas: the owner draws again in the same frame. */
  #measure(): void {
    this.width = this.scroller.clientWidth;
    this.height = this.scroller.clientHeight;
    for (const canvas of [this.#elements.picture, this.#elements.outlines]) {
      canvas.width = Math.max(1, Math.round(this.width * devicePixelRatio));
      canvas.height = Math.max(1, Math.round(this.height * devicePixelRatio));
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
