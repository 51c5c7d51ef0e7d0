// Where the picture looks, and how it gets there: a span of values on the horizontal axis, eased from one node to the next.

export interface Span {
  left: number;
  right: number;
}

const DURATION_MILLISECONDS = 180;
/** Zooming in by wheel ends where rounding of the columns would show. */
const NARROWEST_SHARE = 1e-9;

export class Camera {
  #from: Span;
  #target: Span;
  #startedAt: number | undefined;
  #whole: Span;

  constructor(whole: Span) {
    this.#whole = whole;
    this.#from = whole;
    this.#target = whole;
  }

  get isMoving(): boolean {
    return this.#startedAt !== undefined;
  }

  /** The span at this moment; the move is over once its time is. */
  at(now: number): Span {
    if (this.#startedAt === undefined) return this.#target;
    const progress = Math.min(1, Math.max(0, (now - this.#startedAt) / DURATION_MILLISECONDS));
    if (progress === 1) {
      this.#startedAt = undefined;
      return this.#target;
    }
    const eased = 1 - (1 - progress) ** 3;
    const between = (from: number, to: number): number => from + (to - from) * eased;
    return { left: between(this.#from.left, this.#target.left), right: between(this.#from.right, this.#target.right) };
  }

  get target(): Span {
    return this.#target;
  }

  get isWhole(): boolean {
    return this.#target.left <= this.#whole.left && this.#target.right >= this.#whole.right;
  }

  moveTo(target: Span, now: number, animated: boolean): void {
    this.#from = this.at(now);
    this.#target = target;
    this.#startedAt = animated && target.right > target.left ? now : undefined;
  }

  get whole(): Span {
    return this.#whole;
  }

  /** A new tree: nothing of the old axis holds. */
  reset(whole: Span, target: Span): void {
    this.#whole = whole;
    this.#from = target;
    this.#target = target;
    this.#startedAt = undefined;
  }

  /** Zooms around a point: `anchor` (0 left edge, 1 right edge) keeps its value. */
  zoomAround(anchor: number, factor: number, now: number): void {
    const { left, right } = this.at(now);
    const wholeWidth = this.#whole.right - this.#whole.left;
    const width = Math.max(wholeWidth * NARROWEST_SHARE, Math.min(wholeWidth, (right - left) * factor));
    const fixed = left + (right - left) * anchor;
    this.#place(fixed - width * anchor, width);
  }

  /** Shifts by a part of the visible span. */
  panBy(part: number, now: number): void {
    const { left, right } = this.at(now);
    const width = right - left;
    this.#place(left + part * width, width);
  }

  #place(left: number, width: number): void {
    const clamped = Math.max(this.#whole.left, Math.min(left, this.#whole.right - width));
    this.#target = { left: clamped, right: clamped + width };
    this.#startedAt = undefined;
  }
}
