import { expect, it } from "vitest";
import { initialState, type ViewState } from "../state/schema.ts";
import { waysOut } from "./ways-out.ts";

const labels = (patch: Partial<ViewState>): string[] => waysOut({ ...initialState(), ...patch }).map(({ label }) => label);

it("lets go of each thing that narrows, and of no other", () => {
  expect(labels({})).toEqual(["Last 24 hours"]);
  expect(labels({ from: "now-1d" })).toEqual([]);
  expect(labels({ from: "now-1d", to: "now-1h" })).toEqual(["Last 24 hours"]);
  expect(labels({ query: '{service_name="a"}', filters: "hide=b", path: "main" })).toEqual([
    "All callers",
    "Clear filters",
    "All services",
    "Last 24 hours",
  ]);
});

it("takes a zoom for a call path only where values are of it", () => {
  expect(labels({ zoom: "0123456789abcdef", from: "now-1d" })).toEqual([]);
  expect(labels({ zoom: "0123456789abcdef", from: "now-1d", panes: "source" })).toEqual(["All callers"]);
});

it("keeps filters that are switched off", () => {
  const [clear] = waysOut({ ...initialState(), filters: "!focus=a\nhide=b" });
  expect(clear).toEqual({ label: "Clear filters", patch: { filters: "!focus=a", path: "", zoom: "" } });
  expect(labels({ filters: "!focus=a", from: "now-1d" })).toEqual([]);
});

it("offers no time of a file", () => {
  expect(labels({ file: "x/a.pb.gz", query: '{a="b"}' })).toEqual(["Clear the selector"]);
});
