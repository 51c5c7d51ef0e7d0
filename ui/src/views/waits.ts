// What the page waits for: every load under way, and how to end them all at once.

import { signal, type ReadonlySignal } from "@preact/signals";

export interface Wait {
  /** What is on its way: "the flame graph". */
  what: string;
  /** Of `performance.now()`. */
  since: number;
  /** The reader has asked for it: nothing on the screen answers this yet. A refresh is none. */
  isAsked: boolean;
  cancel: () => void;
}

const underWay = signal<readonly Wait[]>([]);

export const waits: ReadonlySignal<readonly Wait[]> = underWay;

/** Until what is given back is called. */
export function waitFor(wait: Wait): () => void {
  underWay.value = [...underWay.peek(), wait];
  return () => {
    if (underWay.peek().includes(wait)) underWay.value = underWay.peek().filter((other) => other !== wait);
  };
}

/** Closes the connections, which is how the server learns that nobody waits any more. */
export function cancelAll(): void {
  for (const wait of underWay.peek()) wait.cancel();
}
