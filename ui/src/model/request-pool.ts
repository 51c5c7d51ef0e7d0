// A few requests at a time, in the order they were asked for: a page of small pictures must not keep the server from the large one.

export class RequestPool {
  readonly #limit: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Starts `request` when it is its turn. What is aborted before that is never started. */
  async run<T>(signal: AbortSignal, request: () => Promise<T>): Promise<T> {
    if (this.#running < this.#limit) this.#running++;
    else await this.#turn(signal);
    try {
      signal.throwIfAborted();
      return await request();
    } finally {
      this.#running--;
      this.#waiting.shift()?.();
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const abandon = (): void => {
        const place = this.#waiting.indexOf(begin);
        if (place !== -1) this.#waiting.splice(place, 1);
        reject(signal.reason as Error);
      };
      const begin = (): void => {
        signal.removeEventListener("abort", abandon);
        // Here and not after the wait: whoever comes in between must see the place taken.
        this.#running++;
        resolve();
      };
      if (signal.aborted) return abandon();
      signal.addEventListener("abort", abandon, { once: true });
      this.#waiting.push(begin);
    });
  }
}
