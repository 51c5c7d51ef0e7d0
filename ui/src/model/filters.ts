// The filters of a profile as the reader sees them: an ordered list of chips. Their names and their order are those of the
// API and of the command line, so one list is the same question everywhere.

/** In the vocabulary of pprof, and `collapse`; `tag…` look at labels, the others at frames. */
export const FILTER_KINDS = ["focus", "ignore", "hide", "show", "show_from", "collapse", "tagfocus", "tagignore"] as const;

export type FilterKind = (typeof FILTER_KINDS)[number];

export interface Filter {
  kind: FilterKind;
  /** A regular expression, with a field before it or not: `pkg:^net/`. */
  pattern: string;
  /** Kept as a chip, and not applied. */
  isOff: boolean;
}

/** What stands before a filter that is switched off. */
const OFF_MARK = "!";

/** One line a filter, `KIND=PATTERN`: a pattern has no line break. Lines that are no filter are left out. */
export function parseFilters(text: string): Filter[] {
  return text.split("\n").flatMap((line) => parseFilter(line) ?? []);
}

function parseFilter(line: string): Filter | undefined {
  const isOff = line.startsWith(OFF_MARK);
  const body = isOff ? line.slice(OFF_MARK.length) : line;
  const equals = body.indexOf("=");
  const kind = FILTER_KINDS.find((candidate) => candidate === body.slice(0, equals));
  const pattern = body.slice(equals + 1);
  return kind === undefined || pattern === "" ? undefined : { kind, pattern, isOff };
}

export function printFilters(filters: readonly Filter[]): string {
  return filters.map(({ kind, pattern, isOff }) => `${isOff ? OFF_MARK : ""}${kind}=${pattern}`).join("\n");
}

/** As parameters of a request, in their order: a later filter does not see what an earlier one has taken out. */
export function filterParameters(filters: readonly Filter[]): [FilterKind, string][] {
  return filters.flatMap(({ kind, pattern, isOff }) => (isOff ? [] : [[kind, pattern] as [FilterKind, string]]));
}

/** With one filter more, at the end; the same one twice is asked for once. */
export function withFilter(text: string, kind: FilterKind, pattern: string): string {
  const others = parseFilters(text).filter((filter) => filter.kind !== kind || filter.pattern !== pattern);
  return printFilters([...others, { kind, pattern, isOff: false }]);
}

/** With all of these at the end, in their order. */
export function withFilters(text: string, filters: readonly (readonly [FilterKind, string])[]): string {
  return filters.reduce((sum, [kind, pattern]) => withFilter(sum, kind, pattern), text);
}

/** With the filter at one place moved to another. */
export function movedFilter(text: string, from: number, to: number): string {
  const filters = parseFilters(text);
  const [moved] = filters.splice(from, 1);
  if (moved) filters.splice(Math.max(0, Math.min(filters.length, to)), 0, moved);
  return printFilters(filters);
}

/** A pattern that matches exactly this name, in one field of a frame. */
export function exactPattern(field: "fn" | "file" | "pkg" | "bin" | "kind", name: string): string {
  return `${field}:^${escaped(name)}$`;
}

/** As it stands, in a regular expression of the server. */
function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
}

/** What a frame may be folded into with its neighbours, largest last; each is what `collapse` takes. */
export interface Collapsible {
  what: string;
  pattern: string;
}

/**
 * Modules below a Rust crate or a C++ namespace belong to it; a Java package is one without its classes. What has no package in its
 * name is folded by its library.
 */
export function packageCollapse({ name, kind }: { name: string; kind: string }): Collapsible | undefined {
  if (kind === "kernel") return { what: "the kernel", pattern: exactPattern("kind", "kernel") };
  const crate = /^(?:<(?:[&*<]|mut |const |dyn )*)?([A-Za-z_]\w*)::/.exec(name)?.[1];
  if (crate !== undefined) return { what: crate, pattern: `pkg:^(${escaped(crate)})(::|$)` };
  if (name.startsWith("<") || name.includes("::")) return undefined;
  const path = name.split(/[(<[]/, 1)[0];
  const slash = path.lastIndexOf("/");
  const parts = path.slice(slash + 1).split(".");
  if (parts.length < 2 || parts[0] === "") return undefined;
  if (kind === "jvm" && slash === -1) {
    const of = parts.slice(0, -2).join(".");
    return of === "" ? undefined : { what: of, pattern: `pkg:^(${escaped(of)})(\\.[^.]+)?$` };
  }
  const of = slash === -1 ? parts.slice(0, -1).join(".") : path.slice(0, slash + 1) + parts[0];
  return { what: of, pattern: exactPattern("pkg", of) };
}

export function libraryCollapse(mapping: string): Collapsible | undefined {
  if (mapping === "") return undefined;
  return { what: mapping.slice(mapping.lastIndexOf("/") + 1), pattern: exactPattern("bin", mapping) };
}

export function recursionCollapse(name: string): string {
  return `recursion:${exactPattern("fn", name)}`;
}
