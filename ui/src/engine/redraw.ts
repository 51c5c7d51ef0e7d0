// When a picture is drawn: in the next frame, once however many ask for it, and again while something moves.

const REST_AFTER_MILLISECONDS = 80;

export class Redraw {
  readonly #draw: () => void;
  #request = 0;
  #busyUntil = 0;

  constructor(draw: () => void) {
    this.#draw = draw;
  }

  /** Draws in the next frame. */
  soon(): void {
    if (this.#request === 0) this.#request = requestAnimationFrame(this.#draw);
  }

  /** Keeps drawing coarse pictures for a moment, then one fine one. */
  stayBusy(): void {
    this.#busyUntil = performance.now() + REST_AFTER_MILLISECONDS;
    this.soon();
  }

  isBusy(now: number): boolean {
    return now < this.#busyUntil;
  }

  /** Nobody needs to ask any more: it is being drawn, or never will be. */
  settle(): void {
    cancelAnimationFrame(this.#request);
    this.#request = 0;
  }
}
