import { describe, expect, it } from "vitest";
import { encodeTree, generateTree } from "../../bench/generate.ts";
import { FlameTree } from "./flame-tree.ts";
import { escapeForSearch, matchedWithin, matchFrames, parseSearch, summarizeMatches, type SearchPattern } from "./search.ts";

function pattern(text: string): SearchPattern {
  const parsed = parseSearch(text);
  if (!parsed.ok || !parsed.pattern) throw new Error(`no pattern: ${text}`);
  return parsed.pattern;
}

const RECURSIVE = FlameTree.decode(
  encodeTree({
    frame: { name: "total" },
    self: 0,
    children: [
      {
        frame: { name: "walk", file: "tree.c" },
        self: 10,
        children: [
          {
            frame: { name: "walk", file: "tree.c" },
            self: 20,
            children: [{ frame: { name: "malloc", mapping: "libc.so" }, self: 5 }],
          },
        ],
      },
      { frame: { name: "idle" }, self: 65 },
    ],
  }),
);
const share = (text: string): number => summarizeMatches(RECURSIVE, matchFrames(RECURSIVE.frames, pattern(text))).total;

describe("search", () => {
  it("counts a stack once, however many of its frames match", () => {
    expect(share("walk")).toBe(35);
    expect(share("walk|malloc")).toBe(35);
    expect(share("malloc|idle")).toBe(70);
    expect(share("nothing")).toBe(0);
  });

  it("lists the topmost places, and searches below a node when asked", () => {
    const matched = matchFrames(RECURSIVE.frames, pattern("walk"));
    expect(summarizeMatches(RECURSIVE, matched).nodes).toEqual([1]);
    expect(summarizeMatches(RECURSIVE, matched, 4)).toEqual({ total: 0, nodes: [] });
  });

  it("knows the share of a view, also below a match", () => {
    const matched = matchFrames(RECURSIVE.frames, pattern("malloc"));
    expect(matchedWithin(RECURSIVE, matched, 2)).toBe(5);
    expect(matchedWithin(RECURSIVE, matched, 4)).toBe(0);
    const above = matchFrames(RECURSIVE.frames, pattern("walk"));
    expect(matchedWithin(RECURSIVE, above, 3)).toBe(5);
  });

  it("sums what a stack-by-stack count sums", () => {
    const tree = FlameTree.decode(generateTree(5_000, 300, 9));
    const matched = matchFrames(tree.frames, pattern("function_1"));
    let counted = 0;
    for (let node = 0; node < tree.length; node++) {
      if (tree.pathTo(node).some((step) => matched[tree.frame[step]] === 1)) counted += tree.self[node];
    }
    expect(summarizeMatches(tree, matched).total).toBe(counted);
  });

  it("searches other fields by prefix", () => {
    expect(share("file:tree")).toBe(35);
    expect(share("bin: libc")).toBe(5);
    expect(share("fn:idle")).toBe(65);
  });

  it("minds case once there is a capital, escapes apart", () => {
    expect(share("WALK")).toBe(0);
    expect(share("Walk|\\Wx")).toBe(0);
    expect(pattern("\\Sx").expression.ignoreCase).toBe(true);
  });

  it("says why an expression does not parse", () => {
    expect(parseSearch("a(")).toMatchObject({
      ok: false,
      message: expect.stringContaining("not a regular expression") as string,
    });
    expect(parseSearch("")).toEqual({ ok: true, pattern: undefined });
  });

  it("finds exactly a name that is escaped", () => {
    const name = "<a as b>::c(d*, e[]) + f.g/h\\i";
    expect(pattern(`^${escapeForSearch(name)}$`).expression.test(name)).toBe(true);
  });
});
