import { expect, it } from "vitest";
import { commonType, noteText, typeTotals, type FileAbout } from "./file-about.ts";
import { parseTypeId } from "./profile-type.ts";

const CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const HEAP = "memory:inuse_space:bytes:space:bytes";

function about(ids: string[], shown: string | null): FileAbout {
  return {
    id: "0".repeat(32),
    bytes: 1,
    format: "pprof",
    format_description: "",
    from: 0,
    to: 1,
    is_dated: false,
    profiles: 1,
    samples: 1,
    default_type: shown,
    types: ids.map((id) => ({ ...parseTypeId(id), total: 2_000_000_000 })),
    labels: [],
    notes: [],
    comments: [],
  };
}

it("begins with the type that is shown", () => {
  expect(typeTotals(about([HEAP, CPU], CPU)).map(({ type, total }) => [type.id, total])).toEqual([
    [CPU, "2.00 s"],
    [HEAP, expect.stringContaining("GiB")],
  ]);
});

it("compares by a type that both have", () => {
  expect(commonType(about([CPU], CPU), about([HEAP, CPU], HEAP))).toBe(CPU);
  expect(commonType(about([CPU, HEAP], CPU), about([HEAP, CPU], HEAP))).toBe(HEAP);
  expect(commonType(about([CPU], CPU), about([HEAP], HEAP))).toBeUndefined();
});

it("counts what happened more than once", () => {
  expect(noteText({ code: "x", count: 1, text: "a stack was cut" })).toBe("a stack was cut");
  expect(noteText({ code: "x", count: 3, text: "stacks were cut" })).toBe("stacks were cut (3 times)");
});
