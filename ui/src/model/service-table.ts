// The rows of the services screen: what each service costs, against all of them and against the period before.

import { formatCost, profiledSeconds, type Pace } from "./cost.ts";
import { filterServices, mergedSparkline, paces, sumOfTotals, totalsOfAll, type ServicesAnswer } from "./services.ts";

export const SERVICE_COLUMNS = ["service", "cost", "share", "change"] as const;
export type ServiceColumn = (typeof SERVICE_COLUMNS)[number];

export interface ServiceRow {
  service: string;
  total: number;
  /** Part of all services, 0 to 1. */
  share: number;
  /** What it costs, in words. */
  cost: string;
  /** `undefined` where the period before was not observed. */
  pace: Pace | undefined;
  sparkline: number[];
  /** In the order of cost: the colour of the service everywhere. */
  rank: number;
}

export function serviceRows(answer: ServicesAnswer): ServiceRow[] {
  const whole = sumOfTotals(answer.services);
  const rows = answer.services.map((entry, rank) => ({
    service: entry.service,
    total: entry.total,
    share: whole > 0 ? entry.total / whole : 0,
    cost: formatCost(entry.total, answer, profiledSeconds(entry)),
    pace: paces(answer, entry),
    sparkline: mergedSparkline(entry.sparkline, answer),
    rank,
  }));
  // The answer also lists services that have other types only.
  return rows.filter(({ total, pace }) => total > 0 || (pace?.before ?? 0) > 0);
}

/** All of them as one. */
export function rowOfAll(answer: ServicesAnswer, rows: readonly ServiceRow[]): Pick<ServiceRow, "cost" | "pace" | "sparkline"> {
  const longest = Math.max(0, ...rows.map(({ sparkline }) => sparkline.length));
  const totals = totalsOfAll(answer);
  return {
    cost: formatCost(totals.total, answer, profiledSeconds(totals)),
    pace: paces(answer, totals),
    sparkline: Array.from({ length: longest }, (_, place) => sum(rows.map(({ sparkline }) => sparkline[place] ?? 0))),
  };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** By how much it grew: 0.1 is a tenth more. New services grew most; without a period before nothing is known. */
export function growth({ pace }: Pick<ServiceRow, "pace">): number | undefined {
  if (pace === undefined) return undefined;
  const { now, before } = pace;
  if (before > 0) return now / before - 1;
  return now > 0 ? Number.POSITIVE_INFINITY : 0;
}

/** Those whose name has all words typed, in the order asked for. What is not known comes last, and equals by name. */
export function orderedServices(
  answer: ServicesAnswer,
  rows: readonly ServiceRow[],
  text: string,
  column: ServiceColumn,
  descending: boolean,
): ServiceRow[] {
  const wanted = new Set(filterServices(answer.services, text).map(({ service }) => service));
  const direction = descending ? -1 : 1;
  const byName = (left: ServiceRow, right: ServiceRow): number => left.service.localeCompare(right.service, "en");
  return rows
    .filter(({ service }) => wanted.has(service))
    .toSorted((left, right) => {
      if (column === "service") return byName(left, right) * direction;
      const [one, other] = [left, right].map((row) => (column === "change" ? growth(row) : row.total));
      if (one === other) return byName(left, right);
      if (one === undefined) return 1;
      if (other === undefined) return -1;
      return (one < other ? -1 : 1) * direction;
    });
}
