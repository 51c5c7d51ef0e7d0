// The values of one label side by side: what each costs, and how to look at one or at two of them.

import { formatCost, paceBetween, profiledSeconds, type Pace, type Spent } from "./cost.ts";
import { isGauge } from "./profile-type.ts";
import { formatSelector, parseSelector } from "./selector.ts";
import type { SeriesAnswer } from "./series.ts";

export interface LabelCard {
  /** Empty for what does not have the label. */
  value: string;
  total: number;
  /** Part of all values, 0 to 1. */
  share: number;
  /** What it costs, in words. */
  cost: string;
  /** Against the range of the same length before; `undefined` where that was not observed. */
  pace: Pace | undefined;
  sparkline: number[];
}

export type CardOrder = "cost" | "value" | "change";

/** `isComparable` says whether enough of the range before was observed. */
export function labelCards(answer: SeriesAnswer, label: string, before: SeriesAnswer, isComparable: boolean): LabelCard[] {
  const isLevel = isGauge(answer.type);
  const values = valuesOf(answer, label, isLevel);
  const previous = valuesOf(before, label, isLevel);
  const whole = [...values.values()].reduce((sum, { total }) => sum + total, 0);
  return [...values].map(([value, { total, seconds, sparkline }]) => ({
    value,
    total,
    share: whole > 0 ? total / whole : 0,
    cost: formatCost(total, answer, seconds),
    pace: isComparable ? paceBetween(answer.type, { total, seconds }, previous.get(value)) : undefined,
    sparkline,
  }));
}

interface LabelValue extends Spent {
  sparkline: number[];
}

function valuesOf(answer: SeriesAnswer, label: string, isLevel: boolean): Map<string, LabelValue> {
  const step = answer.step_ms;
  const times = answer.series.flatMap(({ points }) => points.map(([time]) => time));
  const first = times.reduce((least, time) => Math.min(least, time), Number.POSITIVE_INFINITY);
  const last = times.reduce((most, time) => Math.max(most, time), Number.NEGATIVE_INFINITY);
  const length = step > 0 && last >= first ? Math.round((last - first) / step) + 1 : 0;
  return new Map(
    answer.series.map(({ labels, points, profiled_ms }) => {
      const sparkline = Array.from({ length }, () => 0);
      for (const [time, value] of points) sparkline[Math.round((time - first) / step)] = value;
      const sum = points.reduce((total, [, value]) => total + value, 0);
      // Levels do not add up over time.
      const total = isLevel && length > 0 ? sum / length : sum;
      return [labels[label] ?? "", { total, seconds: profiledSeconds({ profiled_ms }), sparkline }];
    }),
  );
}

/** Cards whose value has all words typed; equals by value. */
export function orderedCards(cards: readonly LabelCard[], text: string, order: CardOrder): LabelCard[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const byValue = (left: LabelCard, right: LabelCard): number =>
    left.value.localeCompare(right.value, "en", { numeric: true });
  const weight = ({ total, pace }: LabelCard): number => {
    if (order === "cost") return total;
    return pace === undefined ? 0 : Math.abs(pace.now - pace.before);
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
