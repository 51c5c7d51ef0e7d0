// The command line that gives the answer on the screen. Its parts may come from a link somebody sent: each is quoted, so that
// pasting it runs one command and nothing else.

import { filterParameters, parseFilters } from "./filters.ts";

/** What `--server` takes: the page may be below a prefix, which its requests have, too. */
export function serverOfPage(pageUrl: string): string {
  return new URL(".", pageUrl).href.replace(/\/$/, "");
}

export interface CommandSelection {
  query: string;
  type: string;
  from: string;
  to: string;
  /** As in the address. */
  filters: string;
  /** As in the address: one function a line. */
  path?: string;
}

/** What `candela query` prints; `profile` is the merged profile itself. */
export type QueryKind = "top" | "tree" | "profile" | "callers" | "source" | "disassembly";

/** `kind` may be followed by what it is about: `callers`, `source` and `disassembly` by a function. */
export function queryCommand(
  server: string,
  { query, type, from, to, filters, path = "" }: CommandSelection,
  kind: QueryKind = "top",
  about?: string,
): string {
  const options = [...Object.entries({ server, query, type, from, to }), ...narrowing(filters, path)];
  return [`candela query ${kind}`, ...(about === undefined ? [] : [shellQuote(about)]), ...optionTexts(options)].join(" ");
}

/** The same about a file. It has no selector and no range there: what these leave out is in the answer of the command. */
export function fileCommand(
  name: string,
  { type, filters, path = "" }: Pick<CommandSelection, "type" | "filters" | "path">,
  kind: QueryKind = "top",
  about?: string,
): string {
  const options = [["type", type] as const, ...narrowing(filters, path)];
  return [`candela query ${kind}`, ...(about === undefined ? [] : [shellQuote(about)]), fileArgument(name), ...optionTexts(options)].join(" ");
}

/** How two sides are compared: of these the command line has the usual ones by default. */
export interface ComparisonChoice {
  normalization?: string;
  fdr?: string;
}

export function fileDiffCommand(
  before: string,
  after: string,
  { type, filters, path = "", ...choice }: Pick<CommandSelection, "type" | "filters" | "path"> & ComparisonChoice,
): string {
  const options = [["type", type] as const, ...comparing(choice), ...narrowing(filters, path)];
  return [`candela diff ${fileArgument(before)} ${fileArgument(after)}`, ...optionTexts(options)].join(" ");
}

/** Lines over time, one for each value of a label: what lists of services and of values are about. */
export function seriesCommand(server: string, { query, type, from, to, filters, path = "" }: CommandSelection, label: string): string {
  const options = [...Object.entries({ server, query, type, from, to }), ["group-by", label] as const, ...narrowing(filters, path)];
  return ["candela query series", ...optionTexts(options)].join(" ");
}

type Options = readonly (readonly [name: string, value: string])[];

function narrowing(filters: string, path: string): Options {
  return [
    ...filterParameters(parseFilters(filters)).map(([name, pattern]) => [name.replaceAll("_", "-"), pattern] as const),
    ...(path === "" ? [] : path.split("\n").map((step) => ["path", step] as const)),
  ];
}

function optionTexts(options: Options): string[] {
  return options.map(([name, value]) => `--${name} ${shellQuote(value)}`);
}

/** A name that begins with a dash would be an option. */
function fileArgument(name: string): string {
  return shellQuote(name.startsWith("-") ? `./${name}` : name);
}

export interface CommandSides extends CommandSelection, ComparisonChoice {
  base: { query: string; from: number; to: number };
  shown: { from: number; to: number };
}

/** `SELECTOR@FROM..TO` is how the command line names a side. */
export function diffCommand(server: string, { query, type, filters, path = "", base, shown, ...choice }: CommandSides): string {
  const options = [["server", server] as const, ["type", type] as const, ...comparing(choice), ...narrowing(filters, path)];
  return [`candela diff ${sideArgument(base.query, base)} ${sideArgument(query, shown)}`, ...optionTexts(options)].join(" ");
}

function comparing({ normalization = "share", fdr = "0.05" }: ComparisonChoice): Options {
  return [
    ...(normalization === "share" ? [] : [["normalization", normalization] as const]),
    ...(fdr === "0.05" ? [] : [["fdr", fdr] as const]),
  ];
}

function sideArgument(selector: string, { from, to }: { from: number; to: number }): string {
  return shellQuote(`${selector}@${Math.round(from)}..${Math.round(to)}`);
}

/** Plain words stay as they are; in single quotes the shell reads nothing but the closing quote. */
export function shellQuote(text: string): string {
  return /^[\w.:/@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
