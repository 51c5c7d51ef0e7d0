// Timings of the engine, kept in a ring and shown to benchmarks as `window.__perf`. Milliseconds of `performance.now()`.

const CAPACITY = 512;

export interface DrawTiming {
  /** Layout and painting calls, without what the browser does with them afterwards. */
  milliseconds: number;
  boxes: number;
  moving: boolean;
}

export class EnginePerf {
  readonly draws: DrawTiming[] = [];
  readonly hits: number[] = [];
  readonly hovers: number[] = [];
  readonly searches: number[] = [];

  draw(timing: DrawTiming): void {
    keep(this.draws, timing);
  }

  hit(milliseconds: number): void {
    keep(this.hits, milliseconds);
  }

  hover(milliseconds: number): void {
    keep(this.hovers, milliseconds);
  }

  search(milliseconds: number): void {
    keep(this.searches, milliseconds);
  }

  clear(): void {
    for (const ring of [this.draws, this.hits, this.hovers, this.searches]) ring.length = 0;
  }
}

function keep<T>(ring: T[], entry: T): void {
  if (ring.length === CAPACITY) ring.shift();
  ring.push(entry);
}
