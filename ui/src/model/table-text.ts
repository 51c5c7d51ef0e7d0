// The table of functions as text: for other programs exact values in the unit of the profile, for people as on the screen.

import { formatShare } from "./units.ts";

export interface TableRow {
  name: string;
  file: string;
  mapping: string;
  kind: string;
  self: number;
  total: number;
}

const COLUMNS = ["function", "self", "total", "self_percent", "total_percent", "file", "binary", "kind"] as const;

/** RFC 4180. A text that a spreadsheet would take for a formula is told to be one by an apostrophe. */
export function tableCsv(rows: readonly TableRow[], whole: number): string {
  const lines = rows.map(({ name, file, mapping, kind, self, total }) =>
    [name, self, total, percent(self, whole), percent(total, whole), file, mapping, kind].map(csvCell).join(","),
  );
  return `${[COLUMNS.join(","), ...lines].join("\r\n")}\r\n`;
}

export function csvCell(value: string | number): string {
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function tableMarkdown(rows: readonly TableRow[], whole: number, format: (value: number) => string): string {
  const lines = rows.map(
    ({ name, self, total }) =>
      `| ${format(self)} | ${formatShare(self, whole)} | ${format(total)} | ${formatShare(total, whole)} | ${markdownCode(name)} |`,
  );
  return `${["| self | | total | | function |", "|--:|--:|--:|--:|---|", ...lines].join("\n")}\n`;
}

function percent(part: number, whole: number): number {
  return whole > 0 ? Number(((100 * part) / whole).toFixed(2)) : 0;
}

/** A name may hold anything: longer fences than its own, and no bar, which would end the cell. */
export function markdownCode(name: string): string {
  const runs = name.match(/`+/g) ?? [];
  const fence = "`".repeat(1 + Math.max(0, ...runs.map(({ length }) => length)));
  const pad = name.startsWith("`") || name.endsWith("`") ? " " : "";
  return `${fence}${pad}${name.replaceAll("|", String.raw`\|`).replaceAll("\n", " ")}${pad}${fence}`;
}
