import { expect, it } from "vitest";
import { rowWindow, scrollToRow } from "./virtual-rows.ts";

const view = { rowHeight: 25, height: 500, overscan: 2 };

it("puts only the rows in sight and a few more into the document", () => {
  const { first, last, listHeight, top } = rowWindow({ ...view, rows: 1000, scrollTop: 1000 });
  expect([first, last]).toEqual([38, 62]);
  expect(listHeight).toBe(25_000);
  expect(top).toBe(38 * 25);
});

it("reaches the last of a million rows, in a list that browsers still show", () => {
  const rows = 1_000_000;
  const { listHeight } = rowWindow({ ...view, rows, scrollTop: 0 });
  expect(listHeight).toBeLessThanOrEqual(15_000_000);
  const end = rowWindow({ ...view, rows, scrollTop: listHeight - view.height });
  expect(end.last).toBe(rows);
  // The last row ends where the list ends.
  expect(end.top + (end.last - end.first) * view.rowHeight).toBeCloseTo(listHeight, 3);
});

it("scrolls to a row only when it is out of sight", () => {
  expect(scrollToRow(5, { ...view, rows: 1000, scrollTop: 0 })).toBeUndefined();
  expect(scrollToRow(999, { ...view, rows: 1000, scrollTop: 0 })).toBe(1000 * 25 - 500);
  expect(scrollToRow(0, { ...view, rows: 1000, scrollTop: 5000 })).toBe(0);
  for (const row of [0, 123_456, 700_001, 999_999]) {
    const rows = 1_000_000;
    const scrollTop = scrollToRow(row, { ...view, rows, scrollTop: 7_000_000 }) ?? 7_000_000;
    const shown = rowWindow({ ...view, overscan: 0, rows, scrollTop });
    expect(shown.first <= row && row < shown.last).toBe(true);
  }
});

it("has nothing to show of an empty list", () => {
  expect(rowWindow({ ...view, rows: 0, scrollTop: 0 })).toMatchObject({ first: 0, last: 0, listHeight: 0 });
});

it("shows the end of a list that has become shorter than where it was scrolled to", () => {
  const { first, last, top } = rowWindow({ ...view, rows: 30, scrollTop: 20_000 });
  expect([first, last, top]).toEqual([8, 30, 200]);
  expect(rowWindow({ ...view, rows: 3, scrollTop: 20_000 })).toMatchObject({ first: 0, last: 3, top: 0 });
});
