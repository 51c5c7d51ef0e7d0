// The code of a function as rows: source lines, instructions, or both, each with what it took.

export interface CodeValue {
  self: number;
  total: number;
}

export interface SourceLine extends CodeValue {
  line: number;
}

export interface CodePlace extends CodeValue {
  file: string;
  binary: string;
}

/** `/api/v1/source`. */
export interface SourceAnswer {
  unit: string;
  /** Of everything in the selection. */
  total: number;
  function: string | null;
  places: (CodePlace & { build_ids: string[]; kind: string })[];
  place:
    | (CodePlace & { start_line: number; hottest_line: number | null; lines: SourceLine[]; unknown: CodeValue })
    | null;
  source: Availability | null;
  lines_hint?: string;
  hint?: string;
  partial_reason?: string;
}

export interface Availability {
  state: string;
  message: string;
  hint: string;
  text?: string;
}

export interface CodePosition extends CodeValue {
  line: number;
  column: number;
  instructions: number;
}

export interface CodeInstruction {
  address: string;
  bytes: string;
  text: string;
  target: string | null;
  /** Number of the position in the source; null for other code in between. */
  position: number | null;
  /** What was inlined there. */
  other: { function: string; file: string; line: number } | null;
}

/** `/api/v1/disassembly`. */
export interface DisassemblyAnswer {
  unit: string;
  total: number;
  build_id: string | null;
  code: Availability | null;
  positions: CodePosition[];
  functions: { name: string; address: string; size: number; is_cut: boolean; instructions: CodeInstruction[] }[];
}

export type CodeRow =
  | { kind: "line"; line: number; text: string; value: CodeValue | undefined; isRepeated: boolean }
  | { kind: "function"; text: string }
  | { kind: "instruction"; line: number; instruction: CodeInstruction }
  | { kind: "unknown"; value: CodeValue };

type Place = NonNullable<SourceAnswer["place"]>;

/** Every line of the file; without its text those that took something. */
export function sourceRows(place: Place, text: string | undefined): CodeRow[] {
  const rows = linesOf(place, text).map(([line, content, value]): CodeRow => lineRow(line, content, value));
  return [...unknownRows(place), ...rows];
}

/** In the order of addresses: each stretch of instructions of one position below the line that it stands for. */
export function disassemblyRows(answer: DisassemblyAnswer, text: string | undefined): CodeRow[] {
  const source = text === undefined ? [] : splitLines(text);
  const seen = new Set<number>();
  const rows: CodeRow[] = [];
  for (const { name, address, size, is_cut, instructions } of answer.functions) {
    rows.push({ kind: "function", text: `${name} at ${address}, ${size} bytes${is_cut ? ", the rest is not shown" : ""}` });
    let before: number | null | undefined;
    for (const instruction of instructions) {
      const { position } = instruction;
      const at = position === null ? undefined : answer.positions[position];
      if (at && position !== null && position !== before) {
        rows.push({ ...lineRow(at.line, source[at.line - 1] ?? "", at), isRepeated: seen.has(position) });
        seen.add(position);
      }
      before = position;
      rows.push({ kind: "instruction", line: at?.line ?? 0, instruction });
    }
  }
  return rows;
}

/** In the order of the source: below each line the instructions that stand for it. */
export function bothRows(place: Place, answer: DisassemblyAnswer, text: string | undefined): CodeRow[] {
  const byLine = new Map<number, CodeRow[]>();
  for (const { instructions } of answer.functions) {
    for (const instruction of instructions) {
      const line = instruction.position === null ? 0 : answer.positions[instruction.position].line;
      const rows = byLine.get(line) ?? [];
      rows.push({ kind: "instruction", line, instruction });
      byLine.set(line, rows);
    }
  }
  const known = linesOf(place, text);
  if (text === undefined) {
    const lines = new Set(known.map(([line]) => line));
    for (const line of byLine.keys()) if (line > 0 && !lines.has(line)) known.push([line, "", undefined]);
    known.sort(([left], [right]) => left - right);
  }
  const rows = known.flatMap(([line, content, value]) => [lineRow(line, content, value) as CodeRow].concat(byLine.get(line) ?? []));
  const rest = byLine.get(0) ?? [];
  const without: CodeRow[] = rest.length > 0 ? [{ kind: "function", text: "Instructions without a line of this file" }, ...rest] : [];
  return [...unknownRows(place), ...rows, ...without];
}

/** A line that takes less of its function than this is not where one jumps to. */
const HOT_SHARE = 0.01;

/** Rows worth a jump, in their order. */
export function hotRows(rows: readonly CodeRow[], whole: number): number[] {
  return rows.flatMap((row, number) =>
    row.kind === "line" && !row.isRepeated && row.value && row.value.total >= whole * HOT_SHARE ? [number] : [],
  );
}

export function matchingRows(rows: readonly CodeRow[], pattern: RegExp): number[] {
  return rows.flatMap((row, number) => (pattern.test(textOf(row)) ? [number] : []));
}

/** The row of a line; -1 where there is none. */
export function rowOfLine(rows: readonly CodeRow[], line: number): number {
  return rows.findIndex((row) => row.kind === "line" && row.line === line);
}

export function textOf(row: CodeRow): string {
  switch (row.kind) {
    case "line":
    case "function":
      return row.text;
    case "instruction":
      return row.instruction.target === null ? row.instruction.text : `${row.instruction.text}  ; ${row.instruction.target}`;
    case "unknown":
      return "";
  }
}

/** The next of some rows in a direction, around the ends. */
export function nextRow(rows: readonly number[], from: number, direction: 1 | -1): number | undefined {
  if (direction === 1) return rows.find((row) => row > from) ?? rows[0];
  return rows.findLast((row) => row < from) ?? rows.at(-1);
}

function lineRow(line: number, text: string, value: CodeValue | undefined): CodeRow & { kind: "line" } {
  return { kind: "line", line, text, value, isRepeated: false };
}

function linesOf(place: Place, text: string | undefined): [number, string, CodeValue | undefined][] {
  const values = new Map(place.lines.map((line) => [line.line, line]));
  if (text === undefined) return place.lines.map((line) => [line.line, "", line]);
  const source = splitLines(text);
  // A file that was changed since may be shorter than its values.
  const length = Math.max(source.length, place.lines.at(-1)?.line ?? 0);
  return Array.from({ length }, (_, index) => [index + 1, source[index] ?? "", values.get(index + 1)]);
}

function unknownRows({ unknown }: Place): CodeRow[] {
  return unknown.total === 0 ? [] : [{ kind: "unknown", value: unknown }];
}

const TAB_WIDTH = 4;

function splitLines(text: string): string[] {
  const lines = text.replaceAll("\t", " ".repeat(TAB_WIDTH)).split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}
