import { expect, it } from "vitest";
import { nextLook, type Outcome } from "./polling.ts";

const outcome = (patch: Partial<Outcome> = {}): number | undefined =>
  nextLook({ isLive: true, isEmpty: false, failures: [], failuresInRow: 0, ...patch });
const failed = (status: number, failuresInRow = 1): Partial<Outcome> => ({
  failures: [{ isUnreachable: status === 0, status }],
  failuresInRow,
});

it("follows a live range, and an empty one more closely", () => {
  expect(outcome()).toBe(10_000);
  expect(outcome({ isEmpty: true })).toBe(2_000);
  expect(outcome({ isLive: false })).toBeUndefined();
  expect(outcome({ isLive: false, isEmpty: true })).toBeUndefined();
});

it("looks for a server that is away, live or not", () => {
  expect(outcome(failed(0))).toBe(2_000);
  expect(outcome({ ...failed(0, 50), isLive: false })).toBe(2_000);
});

it("does not repeat what was refused", () => {
  for (const status of [400, 401, 403, 404, 422]) expect(outcome({ ...failed(status), isEmpty: true })).toBeUndefined();
});

it("gives a busy or failing server ever more time", () => {
  expect([1, 2, 3, 9].map((failuresInRow) => outcome(failed(429, failuresInRow)))).toEqual([10_000, 20_000, 40_000, 160_000]);
  expect(outcome({ ...failed(500, 2), isLive: false })).toBe(20_000);
});
