import { expect, it } from "vitest";
import { isCpuTime, isGauge, parseTypeId, resolveType, typeTitle } from "./profile-type.ts";
import { rowFilter } from "./search.ts";
import { filterTop, sortTop } from "./top.ts";

const CPU = parseTypeId("process_cpu:cpu:nanoseconds:cpu:nanoseconds");
const SAMPLES = { ...parseTypeId("process_cpu:samples:count:cpu:nanoseconds"), short: "cpu" };
const INUSE = { ...parseTypeId("memory:inuse_space:bytes:space:bytes"), short: "inuse" };

const row = (name: string, self: number, total: number) => ({
  name,
  file: `${name}.c`,
  mapping: "/bin/x",
  kind: "",
  self,
  total,
});
const names = (list: { name: string }[]): string => list.map(({ name }) => name).join("");

it("resolves ids, short names and prefixes; time wins over counts", () => {
  const types = [SAMPLES, INUSE, CPU];
  expect(resolveType(types, "cpu")).toBe(CPU);
  expect(resolveType(types, SAMPLES.id)).toBe(SAMPLES);
  expect(resolveType(types, "memory:inuse")).toBe(INUSE);
  expect(resolveType(types, "lock")).toBeUndefined();
});

it("knows cores, levels and names", () => {
  expect(isCpuTime(CPU.id)).toBe(true);
  expect(isCpuTime("off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds")).toBe(false);
  expect(isGauge(INUSE.id)).toBe(true);
  expect(isGauge(CPU.id)).toBe(false);
  expect(typeTitle(CPU)).toBe("CPU time");
  expect(typeTitle(INUSE)).toBe("Memory in use");
  expect(typeTitle(SAMPLES)).toBe("CPU time (samples)");
});

it("sorts the table with ties by name, and filters by the field searched", () => {
  const rows = [row("b", 1, 5), row("a", 1, 9), row("c", 4, 4)];
  expect(names(sortTop(rows, "self", true))).toBe("cab");
  expect(names(sortTop(rows, "total", false))).toBe("cba");
  expect(names(sortTop(rows, "name", true))).toBe("cba");
  expect(names(filterTop(rows, rowFilter({ field: "file", expression: /^a\.c$/ }, undefined)))).toBe("a");
  expect(names(filterTop(rows, undefined))).toBe("bac");
});
