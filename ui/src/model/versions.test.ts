import { expect, it } from "vitest";
import type { SeriesAnswer } from "./series.ts";
import { comparedVersions, versionChanges, versionLabelOf, versionRuns } from "./versions.ts";

const STEP = 1000;

/** One letter a step: the version that has the most of it; a capital has all of it. */
function answer(services: Record<string, string>): SeriesAnswer {
  const series = Object.entries(services).flatMap(([service, steps]) =>
    ["a", "b", "c"].map((version) => ({
      labels: { service_name: service, version },
      points: [...steps].flatMap((letter, at): [number, number][] => {
        if (letter === version.toUpperCase()) return [[at * STEP, 10]];
        if (letter === letter.toUpperCase()) return [];
        return [[at * STEP, letter === version ? 6 : 4]];
      }),
    })),
  );
  return { type: "cpu", unit: "nanoseconds", from: 0, to: 100 * STEP, step_ms: STEP, series };
}

const runsOf = (steps: string) => versionRuns(answer({ shop: steps }), "version").get("shop") ?? [];
const short = (steps: string) => runsOf(steps).map(({ version, from, to }) => `${version}${from / STEP}-${to / STEP}`);

it("prefers the usual label", () => {
  expect(versionLabelOf(["git_ref", "pod", "version"])).toBe("version");
  expect(versionLabelOf(["service.version", "git_ref"])).toBe("service.version");
  expect(versionLabelOf(["pod"])).toBeUndefined();
});

it("finds who has the most, over rollouts and rollbacks", () => {
  expect(short("AAAABBBB")).toEqual(["a0-4", "b4-8"]);
  expect(short("AAaaaabbBB")).toEqual(["a0-6", "b6-10"]);
  expect(short("AAabbabBBB")).toEqual(["a0-3", "b3-10"]);
  expect(short("AAABBBAAA")).toEqual(["a0-3", "b3-6", "a6-9"]);
  expect(short("AAAA")).toEqual(["a0-4"]);
  expect(short("")).toEqual([]);
  expect(short("AAAB")).toEqual(["a0-3", "b3-4"]);
});

it("tells changes of every service, by time", () => {
  const runs = versionRuns(answer({ shop: "AAAABBCC", cart: "AABBBBBB" }), "version");
  expect(versionChanges(runs, "version")).toEqual([
    { service: "cart", label: "version", version: "b", previous: "a", time: 2000 },
    { service: "shop", label: "version", version: "b", previous: "a", time: 4000 },
    { service: "shop", label: "version", version: "c", previous: "b", time: 6000 },
  ]);
});

it("compares equal times on both sides of the change", () => {
  expect(comparedVersions(runsOf("AAAAAABBB"))).toEqual({
    current: { version: "b", from: 6000, to: 9000 },
    previous: { version: "a", from: 3000, to: 6000 },
  });
  expect(comparedVersions(runsOf("AABBBCCC"), "b")?.previous).toEqual({ version: "a", from: 0, to: 2000 });
  expect(comparedVersions(runsOf("AABBBCCC"), "a")).toBeUndefined();
  expect(comparedVersions(runsOf("AAA"))).toBeUndefined();
});
