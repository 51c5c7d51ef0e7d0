import { expect, it } from "vitest";
import { pairOf, withMark } from "./range-pair.ts";

const [early, late, shown] = [
  { from: 10, to: 20 },
  { from: 30, to: 40 },
  { from: 0, to: 100 },
];

it("the earlier range is before, whichever was marked first", () => {
  expect(pairOf([late, early], shown)).toEqual({ before: early, after: late });
  expect(pairOf([early, late], shown)).toEqual({ before: early, after: late });
  expect(pairOf([early], shown)).toEqual({ before: early, after: shown });
  expect(pairOf([], shown)).toBeUndefined();
});

it("a third mark begins anew, and nothing is no mark", () => {
  expect(withMark([], early)).toEqual([early]);
  expect(withMark([early], late)).toEqual([early, late]);
  expect(withMark([early, late], shown)).toEqual([shown]);
  expect(withMark([early], { from: 5, to: 5 })).toEqual([early]);
});
