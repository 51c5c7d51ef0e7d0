import { describe, expect, it } from "vitest";
import { encodeTree, generateTree } from "../../bench/generate.ts";
import { FlameTree } from "./flame-tree.ts";
import {
  escapeForSearch,
  matchedWithin,
  matchFrames,
  parseSearch,
  rowFilter,
  summarizeMatches,
  type SearchPattern,
} from "./search.ts";
import { filterTop } from "./top.ts";

function pattern(text: string): SearchPattern {
  const parsed = parseSearch(text);
  if (!parsed.ok || !parsed.pattern) throw new Error(`no pattern: ${text}`);
  return parsed.pattern;
}

function matchesIn(tree: FlameTree, text: string): Uint8Array {
  const matched = matchFrames(tree.frames, pattern(text));
  if (!matched) throw new Error(`no time for ${text}`);
  return matched;
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
const share = (text: string): number => summarizeMatches(RECURSIVE, matchesIn(RECURSIVE, text)).total;

describe("search", () => {
  it("counts a stack once, however many of its frames match", () => {
    expect(share("walk")).toBe(35);
    expect(share("walk|malloc")).toBe(35);
    expect(share("malloc|idle")).toBe(70);
    expect(share("nothing")).toBe(0);
  });

  it("lists the topmost places, and searches below a node when asked", () => {
    const matched = matchesIn(RECURSIVE, "walk");
    expect(summarizeMatches(RECURSIVE, matched).nodes).toEqual([1]);
    expect(summarizeMatches(RECURSIVE, matched, 4)).toEqual({ total: 0, nodes: [] });
  });

  it("knows the share of a view, also below a match", () => {
    const matched = matchesIn(RECURSIVE, "malloc");
    expect(matchedWithin(RECURSIVE, matched, 2)).toBe(5);
    expect(matchedWithin(RECURSIVE, matched, 4)).toBe(0);
    const above = matchesIn(RECURSIVE, "walk");
    expect(matchedWithin(RECURSIVE, above, 3)).toBe(5);
  });

  it("sums what a stack-by-stack count sums", () => {
    const tree = FlameTree.decode(generateTree(5_000, 300, 9));
    const matched = matchesIn(tree, "function_1");
    let counted = 0;
    for (let node = 0; node < tree.length; node++) {
      if (tree.pathTo(node).some((step) => matched[tree.frame[step]] === 1)) counted += tree.self[node];
    }
    expect(summarizeMatches(tree, matched).total).toBe(counted);
  });

  it("does not take the folded remainder for a function", () => {
    const tree = FlameTree.decode(
      encodeTree({
        frame: { name: "total" },
        self: 0,
        children: [
          { frame: { name: "other_work", kind: "rust" }, self: 10 },
          { frame: { name: "other", kind: "other" }, self: 90 },
        ],
      }),
    );
    expect(summarizeMatches(tree, matchesIn(tree, "other")).total).toBe(10);
  });

  it("gives up when its time is up", () => {
    const tree = FlameTree.decode(generateTree(5_000, 300, 9));
    let checks = 0;
    expect(matchFrames(tree.frames, pattern("function"), () => ++checks > 2)).toBeUndefined();
    expect(checks).toBe(3);
  });

  it("searches other fields by prefix", () => {
    expect(share("file:tree")).toBe(35);
    expect(share("bin: libc")).toBe(5);
    expect(share("fn:idle")).toBe(65);
  });

  it("searches packages and kinds, in the tree and in the table alike", () => {
    const frames = [
      { name: "net/http.(*Server).Serve", kind: "go" },
      { name: "net/http/httputil.Dump", kind: "go" },
      { name: "http_request", kind: "native" },
      { name: "do_syscall_64", kind: "kernel" },
    ];
    const children = frames.map((frame) => ({ frame, self: 1 }));
    const tree = FlameTree.decode(encodeTree({ frame: { name: "total" }, self: 0, children }));
    const rows = frames.map(({ name, kind }) => ({ name, kind, file: "", mapping: "" }));
    for (const [text, places] of [["pkg:^net/http$", [0]], ["pkg:http", [0, 1]], ["kind:kernel", [3]], ["kind:^go$", [0, 1]]] as const) {
      expect(summarizeMatches(tree, matchesIn(tree, text)).nodes.map((node) => node - 1), text).toEqual(places);
      expect(filterTop(rows, rowFilter(pattern(text), undefined)), text).toEqual(places.map((place) => rows[place]));
    }
  });

  it("searches where functions begin, as a filter does", () => {
    const frames = [
      { name: "parse", file: "main.c", line: 12 },
      { name: "print", file: "main.c", line: 123 },
      { name: "start", file: "main.c" },
    ];
    const children = frames.map((frame) => ({ frame, self: 1 }));
    const tree = FlameTree.decode(encodeTree({ frame: { name: "total" }, self: 0, children }));
    const rows = frames.map(({ name, file }) => ({ name, file, kind: "", mapping: "" }));
    for (const [text, places] of [["line:^main.c:12$", [0]], ["line:main.c:12", [0, 1]], ["line:^main.c$", [2]]] as const) {
      const matched = matchesIn(tree, text);
      expect(summarizeMatches(tree, matched).nodes.map((node) => node - 1), text).toEqual(places);
      expect(filterTop(rows, rowFilter(pattern(text), { frames: tree.frames, matched })), text).toEqual(places.map((place) => rows[place]));
    }
    expect(filterTop(rows, rowFilter(pattern("line:12"), undefined))).toEqual([]);
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
