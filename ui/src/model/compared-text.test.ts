import { expect, it } from "vitest";
import type { ComparedFunction } from "./compared-functions.ts";
import { comparedCsv, comparedMarkdown } from "./compared-text.ts";

const values = (self: number, total: number) => ({ self, total });
const ROWS: ComparedFunction[] = [
  {
    name: 'a "quoted", one',
    file: "a.c",
    mapping: "/bin/a",
    kind: "native",
    before: values(10, 20),
    after: values(15, 20),
    change: { ratio: 1.5, low: 1.2, high: 1.9, p: 0.001, q: 0.002, is_significant: true, permutation_p: 0.01, confirmation: "confirmed" },
  },
  {
    name: "=cmd()|x",
    file: "",
    mapping: "",
    kind: "go",
    before: values(0, 0),
    after: values(5, 5),
    change: { ratio: null, low: null, high: null, p: null, q: 0.4, is_significant: false },
  },
];

it("has exact values, and is empty where nobody knows", () => {
  const [head, first, second, ...rest] = comparedCsv(ROWS).split("\r\n");
  const columns = head.split(",");
  expect(first).toBe('"a ""quoted"", one",10,15,20,20,1.5,1.2,1.9,0.002,true,confirmed,,,,,,,a.c,/bin/a,native');
  expect(second.split(",")).toHaveLength(columns.length);
  expect(second.startsWith("'=cmd()|x,0,5,0,5,,,,0.4,false,,")).toBe(true);
  expect(rest).toEqual([""]);
});

it("reads as the table on the screen", () => {
  const [head, , first, second] = comparedMarkdown(ROWS, "self", "count").split("\n");
  expect(head).toContain("self before");
  expect(first).toBe('| 10 | 15 | +5 | +50 % | +20 … +90 % | `a "quoted", one` |');
  expect(second).toContain("may be chance");
  expect(second).toContain(String.raw`\|x`);
});
