import { describe, expect, it } from "vitest";
import { qualityOf } from "./quality.ts";

const drop = (reason: string, count: number) => ({ reason, count });

describe("drops", () => {
  it("that cost only detail are no losses", () => {
    const { losses, drops } = qualityOf({
      quality: { samples: 10_000 },
      drops: [drop("frame_unnamed", 1_700), drop("unwind_table_evicted", 10), drop("life_ring_full", 0)],
    });
    expect(losses).toEqual([]);
    expect(drops.map(({ reason }) => reason)).toEqual(["frame_unnamed", "unwind_table_evicted"]);
  });

  it("are summed by what they count, and worry above a thousandth", () => {
    const source = {
      quality: { samples: 99_000 },
      drops: [drop("frame_unnamed", 5), drop("sample_ring_full", 60), drop("window_full", 40), drop("spool_full", 1)],
      ingest: { agent: { profiles: 9_999 } },
    };
    expect(qualityOf(source).losses).toEqual([
      { count: 100, unit: "samples", isWorrying: true },
      { count: 1, unit: "profiles", isWorrying: false },
    ]);
    expect(qualityOf({ ...source, quality: { samples: 1_000_000 } }).losses[0].isWorrying).toBe(false);
    expect(qualityOf(source).drops.at(-1)).toMatchObject({ reason: "frame_unnamed", isLoss: false });
  });

  it("are what the server says they are", () => {
    const { losses, drops } = qualityOf({
      drops: [drop("novelty", 3), drop("window_full", 4), drop("refused: too_large", 2)],
      drop_reasons: { novelty: { unit: "events", is_loss: true }, window_full: { unit: "samples", is_loss: false } },
    });
    expect(losses.map(({ count, unit }) => [count, unit])).toEqual([
      [3, "events"],
      [2, "profiles"],
    ]);
    expect(drops.find(({ reason }) => reason === "window_full")).toMatchObject({ unit: "samples", isLoss: false });
  });
});

it("knows nothing of stacks without result codes", () => {
  expect(qualityOf({})).toMatchObject({ samples: 0, userStacks: 0, losses: [] });
  expect(qualityOf({ quality: { samples: null } })).toMatchObject({ samples: 0, userStacks: 0 });
  expect(qualityOf({ quality: { samples: 10 } })).toMatchObject({ samples: 10, userStacks: 0 });
  // Codes that did not occur are not sent.
  expect(qualityOf({ quality: { samples: 10, bad_read: 10 } })).toMatchObject({ userStacks: 10, complete: 0 });
});

it("orders problems of unwinding, and leaves kernel threads out of the whole", () => {
  const quality = { samples: 120, complete: 90, no_table: 3, truncated_stack: 7, bad_read: 0, kernel_only: 20, complete_share: 0.9 };
  expect(qualityOf({ quality })).toMatchObject({
    userStacks: 100,
    complete: 90,
    problems: [
      { name: "truncated_stack", count: 7 },
      { name: "no_table", count: 3 },
    ],
  });
});
