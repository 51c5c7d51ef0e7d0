import { describe, expect, it } from "vitest";
import { tableCsv, tableMarkdown, type TableRow } from "./table-text.ts";

const row = (name: string, self: number, total: number): TableRow => ({
  name,
  file: "a, b.rs",
  mapping: "/bin/x",
  kind: "rust",
  self,
  total,
});

describe("the table as CSV", () => {
  it("has exact values and quotes what needs it", () => {
    expect(tableCsv([row('say "hi"', 25, 200)], 200)).toBe(
      'function,self,total,self_percent,total_percent,file,binary,kind\r\n"say ""hi""",25,200,12.5,100,"a, b.rs",/bin/x,rust\r\n',
    );
  });

  it("is no formula in a spreadsheet", () => {
    expect(tableCsv([row("=cmd()", 1, 1)], 1)).toContain("\r\n'=cmd(),");
  });
});

describe("the table as Markdown", () => {
  it("keeps names as they are, whatever they hold", () => {
    const text = tableMarkdown([row("a|b`c`", 1, 3)], 3, (value) => `${value} ns`);
    expect(text.split("\n")[2]).toBe("| 1 ns | 33.3 % | 3 ns | 100 % | `` a\\|b`c` `` |");
  });
});
