import { describe, expect, it } from "vitest";
import { labelCards, orderedCards, withValue } from "./label-grid.ts";
import type { SeriesAnswer } from "./series.ts";

const answer: SeriesAnswer = {
  type: "cpu",
  unit: "nanoseconds",
  from: 0,
  to: 40_000,
  step_ms: 10_000,
  series: [
    { labels: { host: "web-2" }, points: [[0, 10], [20_000, 20]] },
    { labels: { host: "web-10" }, points: [[10_000, 60]] },
    { labels: {}, points: [[10_000, 10]] },
  ],
};

describe("cards of a label", () => {
  it("have sums, shares and a line without gaps; what lacks the label is one of them", () => {
    const cards = labelCards(answer, "host", answer, undefined, false);
    const values = { total: 30, share: 0.3, now: undefined, before: undefined };
    expect(cards[0]).toEqual({ value: "web-2", ...values, sparkline: [10, 0, 20] });
    expect(cards[2].value).toBe("");
  });

  it("are means for levels", () => {
    const [card] = labelCards(answer, "host", answer, { now: 5, before: 10 }, true);
    expect(card).toMatchObject({ total: 10, now: 10, before: 10 });
  });

  it("are compared with a period before by what each had of its time, where that was observed", () => {
    expect(labelCards(answer, "host", answer, { now: 30, before: 40 }, false)[0]).toMatchObject({ now: 1, before: 0.75 });
    expect(labelCards(answer, "host", answer, { now: 30, before: undefined }, false)[0].before).toBeUndefined();
  });

  it("are searched and ordered", () => {
    const cards = labelCards(answer, "host", answer, undefined, false);
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
