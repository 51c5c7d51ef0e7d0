// The table of functions of two profiles, and its order.

import { scaledValue } from "./comparison.ts";
import type { TopFunction } from "../api/types.ts";
import type { ChangeChoice, ComparedColumn, Measure } from "../state/schema.ts";
import { presence } from "./change.ts";
import type { DiffStatistics } from "./diff-answer.ts";
import { formatInteger } from "./units.ts";

/** Recursion counts once in the totals. */
export interface ComparedFunction {
  name: string;
  file: string;
  mapping: string;
  kind: string;
  before: FunctionValues;
  after: FunctionValues;
  /** How sure the change of the own value is, and of the total: what a server says of selections. */
  change?: ChangeConfidence | undefined;
  total_change?: ChangeConfidence | undefined;
}

/** Of a ratio after / before. Unknown parts are null. */
export interface ChangeConfidence {
  ratio: number | null;
  /** The interval of 95 %. */
  low: number | null;
  high: number | null;
  p: number | null;
  /** After Benjamini and Hochberg, over all functions. */
  q: number | null;
  is_significant: boolean | null;
  /** Of what is significant: in how large a part of the arrangements of instances the change is as large. */
  permutation_p?: number | null;
  /** What that says. Absent where a server does not confirm. */
  confirmation?: Confirmation | null;
}

/** `too_few`: there are so few instances that no change could be confirmed. */
export type Confirmation = "confirmed" | "doubtful" | "too_few";

interface FunctionValues {
  self: number;
  total: number;
}

export function scaledFunctions(rows: readonly ComparedFunction[], scale: number): readonly ComparedFunction[] {
  if (scale === 1) return rows;
  return rows.map((row) => ({
    ...row,
    before: { self: scaledValue(row.before.self, scale), total: scaledValue(row.before.total, scale) },
  }));
}

/** Changes by their sign: one end is what grew most, the other what shrank most. Equal values are ordered by name. */
export function sortCompared(
  rows: readonly ComparedFunction[],
  measure: Measure,
  column: ComparedColumn,
  descending: boolean,
): ComparedFunction[] {
  const direction = descending ? -1 : 1;
  const key = ({ before, after }: ComparedFunction): number => {
    switch (column) {
      case "before":
        return before[measure];
      case "after":
        return after[measure];
      case "change":
        return after[measure] - before[measure];
      case "name":
        return 0;
    }
  };
  return rows.toSorted((left, right) => {
    const byKey = (key(left) - key(right)) * direction;
    if (byKey !== 0) return byKey;
    const byName = left.name < right.name ? -1 : left.name > right.name ? 1 : 0;
    return column === "name" ? byName * direction : byName;
  });
}

export function confidenceOf(row: ComparedFunction, measure: Measure): ChangeConfidence | undefined {
  return measure === "self" ? row.change : row.total_change;
}

/** Without the functions that have no value on either side: between what grew and what shrank they would fill the table. */
export function withValue(rows: readonly ComparedFunction[], measure: Measure): readonly ComparedFunction[] {
  return rows.filter(({ before, after }) => before[measure] !== 0 || after[measure] !== 0);
}

export function withChange(rows: readonly ComparedFunction[], measure: Measure, wanted: ChangeChoice): readonly ComparedFunction[] {
  if (wanted === "all") return rows;
  return rows.filter((row) => {
    const [was, is] = [row.before[measure], row.after[measure]];
    if (wanted === "changed") return was !== is;
    if (wanted === "significant") return confidenceOf(row, measure)?.is_significant === true;
    return presence(was, is) === wanted;
  });
}

/** What a table of one profile would hold of it: the values after. */
export function topOfCompared(rows: readonly ComparedFunction[]): TopFunction[] {
  return rows.map(({ name, file, mapping, kind, after: { self, total } }) => ({ name, file, mapping, kind, self, total }));
}

/** `+8 … +16 %`: where the change lies, 95 times of 100. `undefined` where nobody knows. */
export function formatInterval({ low, high }: ChangeConfidence): string | undefined {
  if (low === null || high === null) return undefined;
  return `${signedPercent(low)} … ${signedPercent(high)} %`;
}

/** What is exchanged between the sides to confirm a change, and in how many ways. */
export interface Exchange {
  what: string;
  ways: number;
}

export function exchangeOf({ clusters_are: what = "instances", arrangements: ways = 0 }: Partial<DiffStatistics>): Exchange {
  return { what: what === "none" ? "instances" : what, ways };
}

/** How sure a change is, in a line. */
export function describeConfidence(confidence: ChangeConfidence | undefined, exchange: Exchange): string {
  if (!confidence || confidence.q === null) return "too few samples to say";
  const q = `q = ${confidence.q < 0.001 ? "below 0.001" : confidence.q.toFixed(3)}`;
  if (confidence.is_significant !== true) return `may be chance: ${q}`;
  return [`significant: ${q}`, ...describeConfirmation(confidence, exchange)].join("; ");
}

function describeConfirmation({ confirmation, permutation_p: p }: ChangeConfidence, { what, ways }: Exchange): string[] {
  if (confirmation === "too_few") return [`too few ${what} to confirm it`];
  if (!confirmation || p === undefined || p === null) return [];
  const made = `exchanging ${what} makes as much in ${(100 * p).toFixed(1)} % of ${formatInteger(ways)} ways`;
  return [`${confirmation === "confirmed" ? "confirmed" : "not confirmed"}: ${made}`];
}

function signedPercent(ratio: number): string {
  const percent = (ratio - 1) * 100;
  const digits = Math.abs(percent) < 10 ? 1 : 0;
  const text = Math.abs(percent).toFixed(digits);
  if (Number(text) === 0) return "0";
  return `${percent > 0 ? "+" : "−"}${text}`;
}
