import { describe, expect, test } from "vitest";
import {
  bothRows,
  disassemblyRows,
  hotRows,
  matchingRows,
  nextRow,
  rowOfLine,
  sourceRows,
  textOf,
  type CodeInstruction,
  type DisassemblyAnswer,
  type SourceAnswer,
} from "./source-rows.ts";

const place: NonNullable<SourceAnswer["place"]> = {
  file: "/src/a.c",
  binary: "/bin/a",
  self: 80,
  total: 100,
  start_line: 1,
  hottest_line: 3,
  lines: [
    { line: 2, self: 20, total: 20 },
    { line: 3, self: 60, total: 80 },
  ],
  unknown: { self: 0, total: 0 },
};

function instruction(address: string, text: string, position: number | null): CodeInstruction {
  return { address, bytes: "90", text, target: null, position, other: null };
}

const disassembly: DisassemblyAnswer = {
  unit: "nanoseconds",
  total: 200,
  build_id: "ab",
  code: { state: "found", message: "", hint: "" },
  positions: [
    { line: 3, column: 1, self: 60, total: 80, instructions: 2 },
    { line: 2, column: 1, self: 20, total: 20, instructions: 1 },
  ],
  functions: [
    {
      name: "f",
      address: "0x10",
      size: 4,
      is_cut: false,
      instructions: [
        instruction("0x10", "nop", null),
        instruction("0x11", "add rax, 1", 0),
        instruction("0x12", "call 0x20", 1),
        instruction("0x13", "ret", 0),
      ],
    },
  ],
};

const TEXT = "int f() {\n\ta();\n  b();\r\n}\n";

describe("source rows", () => {
  test("every line of the text is a row, with its value", () => {
    const rows = sourceRows(place, TEXT);
    expect(rows.map(textOf)).toEqual(["int f() {", "    a();", "  b();", "}"]);
    expect(rows[2]).toMatchObject({ line: 3, value: { self: 60, total: 80 } });
    expect(rowOfLine(rows, 3)).toBe(2);
  });

  test("without a text the lines with a value are there, and what has no line stands first", () => {
    const rows = sourceRows({ ...place, unknown: { self: 5, total: 5 } }, undefined);
    expect(rows.map((row) => row.kind)).toEqual(["unknown", "line", "line"]);
  });

  test("a value beyond the end of a text that was cut since is kept", () => {
    expect(sourceRows(place, "one line").length).toBe(3);
  });

  test("instructions stand below the position that they are of, told once in full", () => {
    const rows = disassemblyRows(disassembly, TEXT);
    expect(rows.map(({ kind }) => kind)).toEqual([
      "function",
      "instruction",
      "line",
      "instruction",
      "line",
      "instruction",
      "line",
      "instruction",
    ]);
    expect(rows.flatMap((row) => (row.kind === "line" ? [[row.line, row.isRepeated]] : []))).toEqual([
      [3, false],
      [2, false],
      [3, true],
    ]);
  });

  test("both views put instructions below their lines, and the rest at the end", () => {
    const rows = bothRows(place, disassembly, TEXT);
    const kinds = rows.map((row) => (row.kind === "line" ? row.line : row.kind[0]));
    expect(kinds).toEqual([1, 2, "i", 3, "i", "i", 4, "f", "i"]);
    expect(bothRows(place, disassembly, undefined).filter(({ kind }) => kind === "line").length).toBe(2);
  });

  test("one steps through hot lines and matches around the ends", () => {
    const rows = sourceRows(place, TEXT);
    expect(hotRows(rows, place.total)).toEqual([1, 2]);
    expect(hotRows(rows, 10_000)).toEqual([]);
    expect(matchingRows(rows, /b\(/)).toEqual([2]);
    expect(nextRow([1, 2], 2, 1)).toBe(1);
    expect(nextRow([1, 2], 1, -1)).toBe(2);
    expect(nextRow([], 1, 1)).toBeUndefined();
  });
});
