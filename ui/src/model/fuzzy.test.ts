import { describe, expect, it } from "vitest";
import { fuzzyFind, fuzzyScore } from "./fuzzy.ts";

const find = (typed: string, entries: string[]): string[] => fuzzyFind(typed, entries, (entry) => entry, 3);

describe("fuzzy search", () => {
  it("needs all letters in their order", () => {
    expect(fuzzyScore("cmp", "Compare")).toBeDefined();
    expect(fuzzyScore("pmc", "Compare")).toBeUndefined();
    expect(fuzzyScore("", "anything")).toBeDefined();
  });

  it("finds what contains the text first, and the beginning before the middle", () => {
    expect(find("lab", ["service: collab", "screen: Labels", "Labels"])).toEqual(["Labels", "screen: Labels", "service: collab"]);
  });

  it("likes beginnings of words", () => {
    expect(find("gs", ["progress", "go: services"])[0]).toBe("go: services");
  });

  it("keeps the order of what matches alike, and no more than asked for", () => {
    expect(find("", ["b", "a", "c", "d"])).toEqual(["b", "a", "c"]);
  });
});
