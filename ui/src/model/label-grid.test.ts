import { describe, expect, it } from "vitest";
import { labelCards, orderedCards, withValue } from "./label-grid.ts";
import type { SeriesAnswer } from "./series.ts";

const answer: SeriesAnswer = {
  type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
  unit: "nanoseconds",
  from: 0,
  to: 40_000,
  step_ms: 10_000,
  series: [
    { labels: { host: "web-2" }, points: [[0, 10], [20_000, 20]], profiled_ms: 20_000 },
    { labels: { host: "web-10" }, points: [[10_000, 60]] },
    { labels: {}, points: [[10_000, 10]] },
  ],
};

describe("cards of a label", () => {
  it("have sums, shares and a line without gaps; what lacks the label is one of them", () => {
    const cards = labelCards(answer, "host", answer, false);
    const values = { total: 30, share: 0.3, cost: "<0.001 cores", pace: undefined };
    expect(cards[0]).toEqual({ value: "web-2", ...values, sparkline: [10, 0, 20] });
    expect(cards[1].cost, "it is not known how long that took").toBe("60.0 ns");
    expect(cards[2].value).toBe("");
  });

  it("are means for levels", () => {
    const levels = { ...answer, type: "memory:inuse_space:bytes:space:bytes", unit: "bytes" };
    expect(labelCards(levels, "host", levels, true)[0]).toMatchObject({ total: 10, cost: "10 B", pace: { now: 10, before: 10 } });
  });

  it("are compared with a period before by what each had of its time, where that was observed", () => {
    const series = answer.series.map((line) => ({ ...line, profiled_ms: 40_000 }));
    const [card] = labelCards(answer, "host", { ...answer, series }, true);
    expect(card.pace).toEqual({ now: 1.5, before: 0.75 });
    expect(labelCards(answer, "host", { ...answer, series: [] }, true)[0].pace).toEqual({ now: 1.5, before: 0 });
    expect(labelCards(answer, "host", answer, false)[0].pace).toBeUndefined();
  });

  it("are searched and ordered", () => {
    const cards = labelCards(answer, "host", answer, false);
    expect(orderedCards(cards, "WEB", "value").map(({ value }) => value)).toEqual(["web-2", "web-10"]);
    expect(orderedCards(cards, "", "cost")[0].value).toBe("web-10");
  });
});

describe("a selector for one value", () => {
  it("replaces what was said of the label and keeps the rest", () => {
    expect(withValue('{host="a", pod!="x"}', "host", 'b"c')).toBe(String.raw`{pod!="x", host="b\"c"}`);
    expect(withValue("{", "host", "b")).toBeUndefined();
  });
});
