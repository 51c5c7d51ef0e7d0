// The rows of the services screen: what each service costs, against all of them and against the period before.

import { isGauge } from "./profile-type.ts";
import { filterServices, mergedSparkline, previousSeconds, sumOfTotals, type ServicesAnswer } from "./services.ts";

export const SERVICE_COLUMNS = ["service", "cost", "share", "change"] as const;
export type ServiceColumn = (typeof SERVICE_COLUMNS)[number];

export interface ServiceRow {
  service: string;
  total: number;
  /** Part of all services, 0 to 1. */
  share: number;
  /** What is spent a second, or the level; `undefined` where the period before was not observed. */
  before: number | undefined;
  now: number;
  sparkline: number[];
  /** In the order of cost: the colour of the service everywhere. */
  rank: number;
}

/** `seconds` is what was observed of the range. */
export function serviceRows(answer: ServicesAnswer, seconds: number): ServiceRow[] {
  const whole = sumOfTotals(answer.services);
  const secondsBefore = previousSeconds(answer);
  const gauge = isGauge(answer.type);
  const rows = answer.services.map(({ service, total, previous_total: previous, sparkline }, rank) => ({
    service,
    total,
    share: whole > 0 ? total / whole : 0,
    now: gauge ? total : total / seconds,
    before: secondsBefore === undefined ? undefined : gauge ? previous : previous / secondsBefore,
    sparkline: mergedSparkline(sparkline, answer),
    rank,
  }));
  // The answer also lists services that have other types only.
  return rows.filter(({ total, before }) => total > 0 || (before ?? 0) > 0);
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** All of them as one; nothing is known of before where that is so of one. */
export function sumOfRows(rows: readonly ServiceRow[]): Pick<ServiceRow, "now" | "before" | "sparkline"> {
  const before = rows.flatMap((row) => row.before ?? []);
  const longest = Math.max(0, ...rows.map(({ sparkline }) => sparkline.length));
  return {
    now: sum(rows.map(({ now }) => now)),
    before: before.length === rows.length ? sum(before) : undefined,
    sparkline: Array.from({ length: longest }, (_, place) => sum(rows.map(({ sparkline }) => sparkline[place] ?? 0))),
  };
}

/** By how much it grew: 0.1 is a tenth more. New services grew most; without a period before nothing is known. */
export function growth({ now, before }: Pick<ServiceRow, "now" | "before">): number | undefined {
  if (before === undefined) return undefined;
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
