import { describe, expect, it } from "vitest";
import { longWait, namesOf, shorterRange } from "./waiting.ts";

describe("a wait", () => {
  it("is worth a word after a second, a refresh later", () => {
    expect(longWait([{ since: 0, isAsked: true }], 900)).toBeUndefined();
    expect(longWait([{ since: 0, isAsked: true }, { since: 500, isAsked: true }], 1600)).toBe(1600);
    expect(longWait([{ since: 0, isAsked: false }], 1600)).toBeUndefined();
    expect(longWait([{ since: 0, isAsked: false }], 5200)).toBe(5200);
  });

  it("names what is on its way", () => {
    expect(namesOf([{ what: "the line" }])).toBe("the line");
    expect(namesOf([{ what: "a" }, { what: "b" }, { what: "a" }])).toBe("a and b");
    expect(namesOf([{ what: "a" }, { what: "b" }, { what: "c" }, { what: "d" }])).toBe("a, b and 2 more");
  });
});

describe("a shorter range", () => {
  const NOW = Date.UTC(2026, 10, 21, 12);

  it("ends where the long one does", () => {
    expect(shorterRange("now-7d", "now", NOW)).toEqual({ from: "now-1d", length: "1d" });
    expect(shorterRange("now-1h", "now", NOW)).toEqual({ from: "now-15m", length: "15m" });
    const end = NOW - 3600e3;
    expect(shorterRange(String(end - 86400e3), String(end), NOW)).toEqual({ from: String(end - 6 * 3600e3), length: "6h" });
  });

  it("is none of what is short, or no range", () => {
    expect(shorterRange("now-10m", "now", NOW)).toBeUndefined();
    expect(shorterRange("yesterday-ish", "now", NOW)).toBeUndefined();
  });
});
