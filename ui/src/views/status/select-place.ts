// Selects a part of a long text, and brings it into sight: browsers do the first without the second.

import type { TextPlace } from "../../model/document-place.ts";

const LINES_ABOVE = 3;

export function selectPlace(area: HTMLTextAreaElement, { start, end }: TextPlace): void {
  area.focus();
  area.setSelectionRange(start, end);
  const { value, scrollWidth, clientWidth } = area;
  const lines = value.split("\n");
  const before = value.slice(0, start).split("\n");
  // Lines are not wrapped and all letters are of one width, so what is scrolled through tells the size of one.
  const { lineHeight } = getComputedStyle(area);
  area.scrollTop = (before.length - 1 - LINES_ABOVE) * Number.parseFloat(lineHeight);
  const longest = Math.max(...lines.map((line) => line.length));
  const left = ((before.at(-1)?.length ?? 0) / longest) * scrollWidth;
  area.scrollLeft = left < clientWidth / 2 ? 0 : left - clientWidth / 3;
}
