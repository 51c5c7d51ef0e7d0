// A word of confirmation at the edge of the page, gone by itself.

import { signal } from "@preact/signals";

const SHOWN_MILLISECONDS = 2500;

export const notice = signal("");
let timer: ReturnType<typeof setTimeout> | undefined;

export function announce(text: string): void {
  notice.value = text;
  clearTimeout(timer);
  timer = setTimeout(() => (notice.value = ""), SHOWN_MILLISECONDS);
}
