// The functions of two profiles as text: for other programs exact values in the unit of the profile, for people as on the screen.

import { formatDifference, formatRelative } from "./change.ts";
import { confidenceOf, formatInterval, type ChangeConfidence, type ComparedFunction } from "./compared-functions.ts";
import { csvCell, markdownCode } from "./table-text.ts";
import type { Measure } from "../state/schema.ts";
import { formatValue } from "./units.ts";

const CHANGE_COLUMNS = ["ratio", "low", "high", "q", "significant", "confirmation"];
const COLUMNS = [
  "function",
  "self_before",
  "self_after",
  "total_before",
  "total_after",
  ...CHANGE_COLUMNS,
  ...CHANGE_COLUMNS.map((name) => `total_${name}`),
  "file",
  "binary",
  "kind",
];

/** RFC 4180. Values before are scaled as on the screen; what nobody knows is empty. */
export function comparedCsv(rows: readonly ComparedFunction[]): string {
  const lines = rows.map(({ name, file, mapping, kind, before, after, change, total_change: totalChange }) =>
    [name, before.self, after.self, before.total, after.total, ...changeCells(change), ...changeCells(totalChange), file, mapping, kind]
      .map(csvCell)
      .join(","),
  );
  return `${[COLUMNS.join(","), ...lines].join("\r\n")}\r\n`;
}

function changeCells(change: ChangeConfidence | undefined): (string | number)[] {
  if (!change) return CHANGE_COLUMNS.map(() => "");
  const { ratio, low, high, q, is_significant: isSignificant, confirmation } = change;
  return [ratio ?? "", low ?? "", high ?? "", q ?? "", isSignificant === null ? "" : String(isSignificant), confirmation ?? ""];
}

export function comparedMarkdown(rows: readonly ComparedFunction[], measure: Measure, unit: string): string {
  const lines = rows.map((row) => {
    const [was, is] = [row.before[measure], row.after[measure]];
    const confidence = confidenceOf(row, measure);
    const interval = confidence && formatInterval(confidence);
    const doubt = confidence?.is_significant === false ? " may be chance" : "";
    const cells = [
      formatValue(was, unit),
      formatValue(is, unit),
      formatDifference(was, is, unit),
      was === is ? "" : formatRelative(was, is),
      `${interval ?? ""}${doubt}`.trim(),
      markdownCode(row.name),
    ];
    return `| ${cells.join(" | ")} |`;
  });
  return `${[`| ${measure} before | after | change | | 95 % | function |`, "|--:|--:|--:|--:|--:|---|", ...lines].join("\n")}\n`;
}
