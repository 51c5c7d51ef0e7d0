import { expect, it } from "vitest";
import { checkSummary, daemonCounts, daemonStates, diffLines, nodesByNeed, type Daemon, type DocumentCheck, type FleetNode } from "./fleet.ts";

const daemon = (changes: Partial<Daemon> = {}): Daemon => ({
  id: "perf-collector-1",
  state: "running",
  last_error: null,
  uploaded: 0,
  retained: 0,
  dropped: 0,
  since: null,
  ...changes,
});
const node = (name: string, changes: Partial<FleetNode> = {}): FleetNode => ({
  node: name,
  connected: true,
  seen: 0,
  version: 3,
  daemons: [daemon()],
  ...changes,
});

const check = (changes: Partial<DocumentCheck>): DocumentCheck => ({ version: 3, problems: [], notes: [], diff: [], diff_text: "", ...changes });

it("nodes in need come first", () => {
  const nodes = [
    node("b-fine"),
    node("a-fine"),
    node("behind", { version: 2 }),
    node("new", { version: null, daemons: [] }),
    node("away", { connected: false }),
    node("failing", { daemons: [daemon(), daemon({ state: "backing_off" })] }),
    node("erring", { daemons: [daemon({ last_error: "access denied" })] }),
  ];
  const names = nodesByNeed({ version: 3, nodes }).map(({ node: name }) => name);
  expect(names).toEqual(["erring", "failing", "away", "behind", "new", "a-fine", "b-fine"]);
});

it("the difference keeps the lines of the command line", () => {
  const text = '@ ["a",0]\n- {"b":"+ 1"}\n+ 49\n@ ["suspended"]\n+ true';
  expect(diffLines(text).map(({ kind }) => kind)).toEqual(["place", "removed", "added", "place", "added"]);
  expect(diffLines(text).map((line) => line.text).join("\n")).toBe(text);
  expect(diffLines("")).toEqual([]);
});

it("a check comes to one line", () => {
  const problem = { path: ["a"], position: null, text: "a: is wrong" };
  expect(checkSummary(check({ problems: [problem] }))).toBe("1 problem");
  expect(checkSummary(check({ problems: [problem, problem] }))).toBe("2 problems");
  expect(checkSummary(check({}))).toBe("Nothing to change: version 3 says the same");
  expect(checkSummary(check({ version: 0 }))).toBe("Nothing to apply: the document is empty");
  expect(checkSummary(check({ diff: [{}] }))).toBe("1 change");
  expect(checkSummary(check({ diff: [{}, {}] }))).toBe("2 changes");
});

it("daemons are counted by what they do, and losses are told where there are some", () => {
  expect(daemonStates([daemon(), daemon({ state: "backing_off" }), daemon()])).toBe("2 running, 1 backing off");
  expect(daemonCounts(daemon({ uploaded: 12, retained: 3 }))).toBe("12 uploaded, 3 kept");
  expect(daemonCounts(daemon({ dropped: 2 }))).toBe("0 uploaded, 0 kept, 2 dropped");
  expect(daemonCounts(daemon({ stored: 4, not_stored: 1 }))).toBe("0 uploaded, 0 kept, 4 in the store, 1 not in the store");
});
