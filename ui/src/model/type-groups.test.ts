import { expect, it } from "vitest";
import { parseTypeId, type ProfileType } from "./profile-type.ts";
import { groupTypes, typeLabel } from "./type-groups.ts";

const type = (id: string, short: string | null): ProfileType => ({ ...parseTypeId(id), short });
const CPU = type("process_cpu:cpu:nanoseconds:cpu:nanoseconds", "cpu");
const SAMPLES = type("process_cpu:samples:count:cpu:nanoseconds", "cpu");
const IN_USE = type("memory:inuse_space:bytes:space:bytes", "inuse");
const CYCLES = type("event:cycles:count:cycles:count", null);

it("groups types in the order in which one looks for them", () => {
  const groups = groupTypes([CYCLES, IN_USE, CPU, SAMPLES]);
  expect(groups.map(({ title, types }) => [title, types.map(({ sample_type: name }) => name)])).toEqual([
    ["Time", ["cpu", "samples"]],
    ["Memory", ["inuse_space"]],
    ["Others", ["cycles"]],
  ]);
});

it("says the unit where the title does not", () => {
  expect(typeLabel(CPU)).toBe("CPU time");
  expect(typeLabel(IN_USE)).toBe("Memory in use, bytes");
});
