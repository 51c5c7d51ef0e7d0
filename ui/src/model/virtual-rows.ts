// Which rows of a long list are in the document, and where. Browsers cut elements that are tens of millions of pixels high: a list
// beyond that scrolls in proportion, and its rows still come in full height.

export interface RowWindow {
  /** The first row in the document, and the one behind the last. */
  first: number;
  last: number;
  /** Height of the whole list in the document. */
  listHeight: number;
  /** Top edge of the first row in it. */
  top: number;
}

/** Firefox gives up first, at about 17.9 million pixels. */
const LARGEST_HEIGHT = 15_000_000;

export interface RowView {
  rows: number;
  rowHeight: number;
  scrollTop: number;
  /** Of what is visible. */
  height: number;
  /** Rows beyond both edges, so that a slow scroll shows no gap. */
  overscan: number;
}

/** A list that has become shorter is scrolled no further than its end, also before its element says so. */
export function rowWindow({ rows, rowHeight, scrollTop: wanted, height, overscan }: RowView): RowWindow {
  const fullHeight = rows * rowHeight;
  const listHeight = Math.min(fullHeight, LARGEST_HEIGHT);
  const scrollTop = Math.min(wanted, Math.max(0, listHeight - height));
  const at = contentTop(scrollTop, fullHeight, listHeight, height);
  const first = Math.max(0, Math.floor(at / rowHeight) - overscan);
  const last = Math.min(rows, Math.ceil((at + height) / rowHeight) + overscan);
  return { first, last, listHeight, top: scrollTop - (at - first * rowHeight) };
}

/** Where to scroll so that this row is in sight; `undefined` when it is. */
export function scrollToRow(row: number, view: Omit<RowView, "overscan">): number | undefined {
  const { rows, rowHeight, scrollTop, height } = view;
  const fullHeight = rows * rowHeight;
  const listHeight = Math.min(fullHeight, LARGEST_HEIGHT);
  const at = contentTop(scrollTop, fullHeight, listHeight, height);
  const top = row * rowHeight;
  if (top >= at && top + rowHeight <= at + height) return undefined;
  // A third down: what leads to the row stays in sight, and what follows, too.
  const wanted = Math.max(0, Math.min(fullHeight - height, top - height / 3));
  return fullHeight > listHeight ? (wanted * (listHeight - height)) / (fullHeight - height) : wanted;
}

function contentTop(scrollTop: number, fullHeight: number, listHeight: number, height: number): number {
  if (fullHeight <= listHeight) return Math.max(0, scrollTop);
  return Math.max(0, Math.min(1, scrollTop / (listHeight - height))) * (fullHeight - height);
}
