import { expect, it } from "vitest";
import { aroundTime, groupMarkers, markersOf, type Annotation } from "./markers.ts";
import type { VersionChange } from "./versions.ts";

const MINUTE = 60e3;

function note(patch: Partial<Annotation>): Annotation {
  return { id: "1", time: 0, end: null, kind: "note", text: "load test", labels: {}, author: "ann", created: 0, ...patch };
}

const change: VersionChange = { service: "shop", label: "version", version: "v2", previous: "v1", time: 100 * MINUTE };

it("makes one marker of a deploy that is seen and annotated", () => {
  const deploy = note({ kind: "deploy", text: "v2 is out", time: 95 * MINUTE, labels: { service_name: "shop", version: "v2" } });
  const [only, ...others] = markersOf([deploy], [change]);
  expect(others).toEqual([]);
  expect(only).toMatchObject({ text: "v2 is out", annotation: deploy, change });
  for (const other of [
    { ...deploy, labels: { service_name: "cart" } },
    { ...deploy, labels: { service_name: "shop", version: "v3" } },
    { ...deploy, time: 60 * MINUTE },
    { ...deploy, kind: "note" },
  ])
    expect(markersOf([other], [change])).toHaveLength(2);
});

it("says of a deploy that nobody annotated what it was", () => {
  expect(markersOf([], [change])).toMatchObject([{ kind: "deploy", text: "shop v1 → v2", time: 100 * MINUTE, change }]);
});

it("groups what stands on one another, and cuts at the range", () => {
  const markers = markersOf([0, 10, 11, 50, 100].map((time) => note({ id: String(time), time: time * MINUTE })), []);
  const groups = groupMarkers(markers, { from: 5 * MINUTE, to: 100 * MINUTE }, 0.02);
  expect(groups.map(({ markers: inside }) => inside.map(({ key }) => key))).toEqual([["10", "11"], ["50"]]);
  const lasting = markersOf([note({ time: 0, end: 20 * MINUTE })], []);
  expect(groupMarkers(lasting, { from: 5 * MINUTE, to: 100 * MINUTE }, 0.02)).toMatchObject([{ place: 0 }]);
  expect(groupMarkers(markers, { from: 5, to: 5 }, 0.02)).toEqual([]);
});

it("takes equal times around a moment, as long as the range allows", () => {
  const shown = { from: 0, to: 100 * MINUTE };
  const now = 1000 * MINUTE;
  expect(aroundTime(30 * MINUTE, shown, now)).toEqual({ base: { from: 0, to: 30 * MINUTE }, after: { from: 30 * MINUTE, to: 60 * MINUTE } });
  expect(aroundTime(0, shown, now).after).toEqual({ from: 0, to: 30 * MINUTE });
  // What has not been yet cannot be compared.
  expect(aroundTime(95 * MINUTE, { from: 0, to: 200 * MINUTE }, 99 * MINUTE).after).toEqual({ from: 95 * MINUTE, to: 99 * MINUTE });
});
