import { describe, expect, it } from "vitest";
import { randomSequence } from "../../bench/generate.ts";
import { FIELD_NAMES, initialState, type ViewState } from "./schema.ts";
import { CURRENT_VERSION } from "./upgrade.ts";
import { historyModeOf, parseLink, printLink, sharedState } from "./url.ts";

const SAMPLES: { [K in keyof ViewState]: readonly ViewState[K][] } = {
  screen: ["compare", "status"],
  query: ['{service_name="checkout", host=~"web-.*"}', '{path="a&b=c#d?e%2F+ f"}', "{broken"],
  type: ["off_cpu", "memory:inuse_space:bytes:space:bytes"],
  from: ["now-15m", "1795255200000"],
  to: ["1795258800000", "2026-11-21T10:00:00Z"],
  filters: ["focus=pkg:^net/\n!hide=a&b=c", "ignore=#"],
  path: ["main\ncore::ops::Fn<(A, B)>::call\tsrc/a b.rs"],
  groupBy: ["region"],
  baseQuery: ['{version="1.2+3"}'],
  baseFrom: ["now-2h"],
  baseTo: ["now-1h"],
  file: [`${"0".repeat(32)}/a b.pb.gz`],
  baseFile: [`${"f".repeat(32)}/é&=.folded`],
  normalization: ["absolute", "robust"],
  fdr: ["0.001", "0.2"],
  changes: ["new", "significant"],
  widths: ["before", "after"],
  comparedMeasure: ["total"],
  comparedBy: ["before", "name"],
  comparedDescending: [false],
  isUtc: [true],
  live: [false],
  search: ["^main\\.|json::(de|ser)", "file:a/b c", "Ω"],
  pinned: ["core::ops::Fn<(A, B)>::call", "operator+"],
  zoom: ["0123456789abcdef"],
  panes: ["flame", "sandwich"],
  laneBy: ["thread_name"],
  lanes: ["worker-1 pid 7"],
  heatmapOf: ["samples", "profiles"],
  code: ["both", "disassembly"],
  codeFile: ["/src/a b.c", "main.go"],
  codeBinary: ["/usr/bin/shop"],
  orientation: ["flame"],
  colorBy: ["file", "kind"],
  sortBy: ["total", "name"],
  descending: [false],
};

function withSample<K extends keyof ViewState>(state: ViewState, name: K, pick: number): void {
  const choices = SAMPLES[name];
  state[name] = choices[Math.floor(pick * choices.length)];
}

describe("round trip", () => {
  it("of every field alone", () => {
    for (const name of FIELD_NAMES) {
      for (let sample = 0; sample < SAMPLES[name].length; sample++) {
        const state = initialState();
        withSample(state, name, sample / SAMPLES[name].length);
        expect(parseLink(printLink(state)).state).toEqual(state);
      }
    }
  });

  it("of five hundred mixtures", () => {
    const random = randomSequence(42);
    for (let round = 0; round < 500; round++) {
      const state = initialState();
      for (const name of FIELD_NAMES) if (random() < 0.5) withSample(state, name, random());
      expect(parseLink(printLink(state))).toEqual({ state, isNewer: false });
    }
  });

  it("leaves out what is as in the beginning", () => {
    expect(printLink(initialState())).toBe(`?v=${CURRENT_VERSION}`);
  });

  it("stays readable", () => {
    expect(printLink({ ...initialState(), type: "a:b:c:d:e", query: "{}" })).toBe("?v=1&type=a:b:c:d:e");
  });
});

describe("links of tracing views", () => {
  it("are as docs/traces.md has them", () => {
    const link = '?query={service_name="shop",span_id="00f067aa0ba902b7"}&type=wall&from=1795255200&to=1795255230';
    const parsed = parseLink(link.replaceAll('"', "%22").replace("{", "%7B").replace("}", "%7D"));
    expect(parsed).toEqual({
      state: {
        ...initialState(),
        query: '{service_name="shop",span_id="00f067aa0ba902b7"}',
        type: "wall",
        from: "1795255200",
        to: "1795255230",
      },
      isNewer: false,
    });
  });
});

describe("links of other versions", () => {
  it("without a version: names of the API, and those of other profilers", () => {
    expect(parseLink("?service=check%22out&from=now-6h&until=now-1h").state).toEqual({
      ...initialState(),
      query: '{service_name="check\\"out"}',
      from: "now-6h",
      to: "now-1h",
    });
    expect(parseLink('?query={a="b"}&type=off_cpu&service=ignored').state).toEqual({
      ...initialState(),
      query: '{a="b"}',
      type: "off_cpu",
    });
    expect(parseLink("").state).toEqual(initialState());
  });

  it("of version 1 are never rewritten by the upgrade of version 0", () => {
    expect(parseLink("?v=1&until=now-1h").state.to).toBe("now");
  });

  it("of a newer page are read as far as they are known, and said to be", () => {
    const { state, isNewer } = parseLink("?v=99&type=off_cpu&view=hologram&novelty=1");
    expect(isNewer).toBe(true);
    expect(state).toEqual({ ...initialState(), type: "off_cpu" });
  });

  it("with values of no meaning fall back to the beginning", () => {
    expect(parseLink("?v=1&live=maybe&sort=size&dir=up").state).toEqual(initialState());
    expect(parseLink("?v=-1").isNewer).toBe(false);
  });
});

describe("history", () => {
  it("pushes steps, replaces refinements, ignores what is no change", () => {
    const before = initialState();
    expect(historyModeOf(before, { ...before, from: "now-5m" })).toBe("push");
    expect(historyModeOf(before, { ...before, zoom: "0123456789abcdef" })).toBe("push");
    expect(historyModeOf(before, { ...before, panes: "tree" })).toBe("push");
    expect(historyModeOf(before, { ...before, search: "json" })).toBe("replace");
    expect(historyModeOf(before, { ...before, search: "json", type: "lock" })).toBe("push");
    expect(historyModeOf(before, { ...before })).toBeUndefined();
  });
});

it("fixes the times of a link that is sent to somebody", () => {
  const shown = { from: 1_795_255_200_000, to: 1_795_258_800_000 };
  expect(sharedState(initialState(), shown, undefined)).toMatchObject({ from: String(shown.from), to: String(shown.to) });
  expect(sharedState({ ...initialState(), from: "5", to: "2026-11-21T10:00:00Z" }, shown, undefined)).toMatchObject({
    from: "5",
    to: "2026-11-21T10:00:00Z",
  });
  const base = { from: 1_795_251_600_000, to: shown.from };
  expect(sharedState({ ...initialState(), screen: "compare" }, shown, base)).toMatchObject({
    baseFrom: String(base.from),
    baseTo: String(base.to),
  });
});

describe("the zone of a shared link", () => {
  it("stays what the sender chose", () => {
    const shared = sharedState({ ...initialState(), isUtc: true }, { from: 1, to: 2 }, undefined);
    expect(parseLink(printLink(shared)).state.isUtc).toBe(true);
  });
});
