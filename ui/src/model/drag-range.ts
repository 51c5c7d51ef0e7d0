// Ranges chosen by dragging over the chart, and the way back from them.

export interface RangeEnds {
  from: string;
  to: string;
}

/** The range a drag means, unix milliseconds: whole steps, because the chart shows no finer ones. */
export function draggedRange(fromSeconds: number, toSeconds: number, stepSeconds: number): RangeEnds {
  const from = Math.floor(fromSeconds / stepSeconds) * stepSeconds;
  const to = Math.ceil(toSeconds / stepSeconds) * stepSeconds;
  return { from: String(Math.round(from * 1e3)), to: String(Math.round(to * 1e3)) };
}

/** Remembers the range before the first of several drags; a range chosen otherwise in between starts anew. */
export class DragHistory {
  #before: RangeEnds | undefined;
  #chosen: RangeEnds | undefined;

  choose(current: RangeEnds, chosen: RangeEnds): void {
    if (!this.canGoBack(current)) this.#before = { from: current.from, to: current.to };
    this.#chosen = chosen;
  }

  canGoBack(current: RangeEnds): boolean {
    return this.#chosen?.from === current.from && this.#chosen.to === current.to;
  }

  /** The range before the drags; `undefined` when the current one was not dragged. */
  back(current: RangeEnds): RangeEnds | undefined {
    return this.canGoBack(current) ? this.#before : undefined;
  }
}
