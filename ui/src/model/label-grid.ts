// The values of one label side by side: what each costs, and how to look at one or at two of them.

import { formatSelector, parseSelector } from "./selector.ts";
import type { SeriesAnswer } from "./series.ts";

export interface LabelCard {
  /** Empty for what does not have the label. */
  value: string;
  total: number;
  /** Part of all values, 0 to 1. */
  share: number;
  /** What is spent a second, or the level; `undefined` while it is not known what was observed. */
  now: number | undefined;
  /** In the range of the same length before; `undefined` where that was not observed. */
  before: number | undefined;
  sparkline: number[];
}

export type CardOrder = "cost" | "value" | "change";

/** Of the range, and of the one before it where enough of that was observed to be compared with. */
export interface ObservedSeconds {
  now: number;
  before: number | undefined;
}

export function labelCards(
  answer: SeriesAnswer,
  label: string,
  before: SeriesAnswer,
  seconds: ObservedSeconds | undefined,
  isGauge: boolean,
): LabelCard[] {
  const totals = valuesOf(answer, label, isGauge);
  const previous = valuesOf(before, label, isGauge);
  const perSecond = (total: number, during: number | undefined): number | undefined => {
    if (during === undefined) return undefined;
    return isGauge ? total : total / during;
  };
  const whole = [...totals.values()].reduce((sum, { total }) => sum + total, 0);
  return [...totals].map(([value, { total, sparkline }]) => ({
    value,
    total,
    share: whole > 0 ? total / whole : 0,
    now: perSecond(total, seconds?.now),
    before: perSecond(previous.get(value)?.total ?? 0, seconds?.before),
    sparkline,
  }));
}

function valuesOf(answer: SeriesAnswer, label: string, isGauge: boolean): Map<string, { total: number; sparkline: number[] }> {
  const step = answer.step_ms;
  const times = answer.series.flatMap(({ points }) => points.map(([time]) => time));
  const first = times.reduce((least, time) => Math.min(least, time), Number.POSITIVE_INFINITY);
  const last = times.reduce((most, time) => Math.max(most, time), Number.NEGATIVE_INFINITY);
  const length = step > 0 && last >= first ? Math.round((last - first) / step) + 1 : 0;
  return new Map(
    answer.series.map(({ labels, points }) => {
      const sparkline = Array.from({ length }, () => 0);
      for (const [time, value] of points) sparkline[Math.round((time - first) / step)] = value;
      const sum = points.reduce((total, [, value]) => total + value, 0);
      // Levels do not add up over time.
      return [labels[label] ?? "", { total: isGauge && length > 0 ? sum / length : sum, sparkline }];
    }),
  );
}

/** Cards whose value has all words typed; equals by value. */
export function orderedCards(cards: readonly LabelCard[], text: string, order: CardOrder): LabelCard[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const byValue = (left: LabelCard, right: LabelCard): number =>
    left.value.localeCompare(right.value, "en", { numeric: true });
  const weight = ({ total, now, before }: LabelCard): number => {
    if (order === "cost") return total;
    return now === undefined || before === undefined ? 0 : Math.abs(now - before);
  };
  return cards
    .filter(({ value }) => words.every((word) => value.toLowerCase().includes(word)))
    .toSorted((left, right) => (order === "value" ? 0 : weight(right) - weight(left)) || byValue(left, right));
}

/** The selector for one value of the label, whatever it says of that label now; `undefined` when it does not parse. */
export function withValue(selector: string, label: string, value: string): string | undefined {
  const others = parseSelector(selector)?.filter((matcher) => matcher.label !== label || matcher.operator !== "=");
  return others && formatSelector([...others, { label, operator: "=", value }]);
}
