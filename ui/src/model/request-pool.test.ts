import { describe, expect, it } from "vitest";
import { RequestPool } from "./request-pool.ts";

const forever = new AbortController().signal;

describe("a pool of requests", () => {
  it("runs no more than its limit, in their order", async () => {
    const pool = new RequestPool(2);
    const ends: (() => void)[] = [];
    const started: number[] = [];
    const all = [0, 1, 2, 3].map((index) =>
      pool.run(forever, () => new Promise<void>((resolve) => {
        started.push(index);
        ends.push(resolve);
      })),
    );
    expect(started).toEqual([0, 1]);
    ends[1]();
    await all[1];
    await Promise.resolve();
    expect(started).toEqual([0, 1, 2]);
    ends[0]();
    ends[2]();
    await Promise.all([all[0], all[2]]);
    ends[3]();
    await all[3];
    expect(started).toEqual([0, 1, 2, 3]);
  });

  it("never starts what was given up, and goes on after a failure", async () => {
    const pool = new RequestPool(1);
    const failing = pool.run(forever, () => Promise.reject(new Error("away")));
    const abort = new AbortController();
    const waiting = pool.run(abort.signal, () => Promise.resolve("never"));
    const next = pool.run(forever, () => Promise.resolve("next"));
    abort.abort();
    await expect(failing).rejects.toThrow("away");
    await expect(waiting).rejects.toThrow();
    await expect(next).resolves.toBe("next");
  });
});
