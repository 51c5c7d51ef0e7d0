import { expect, it } from "vitest";
import { draggedRange, DragHistory } from "./drag-range.ts";

const HOUR = { from: "now-1h", to: "now" };
const ONE = { from: "1000", to: "2000" };
const TWO = { from: "1200", to: "1400" };

it("takes every step that the drag touched", () => {
  expect(draggedRange(1_000_000_015, 1_000_000_041, 20)).toEqual({ from: "1000000000000", to: "1000000060000" });
  expect(draggedRange(1_000_000_000, 1_000_000_020, 20)).toEqual({ from: "1000000000000", to: "1000000020000" });
});

it("goes back over all drags in a row", () => {
  const history = new DragHistory();
  history.choose(HOUR, ONE);
  history.choose(ONE, TWO);
  expect(history.back(TWO)).toEqual(HOUR);
});

it("leaves a range alone that was not dragged", () => {
  const history = new DragHistory();
  expect(history.back(ONE)).toBeUndefined();
  history.choose(HOUR, ONE);
  expect(history.back(TWO)).toBeUndefined();
  // Chosen by the time picker in between: that is where the next drag goes back to.
  history.choose(TWO, ONE);
  expect(history.back(ONE)).toEqual(TWO);
});
