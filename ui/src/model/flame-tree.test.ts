import { describe, expect, it } from "vitest";
import { encodeTree, generateTree, randomSequence } from "../../bench/generate.ts";
import { DecodeError } from "./columns.ts";
import { FlameTree, NONE, ROOT } from "./flame-tree.ts";

/*  total 100
 *  ├ a 60: b 40 (d 10), c 15, self 5
 *  └ e 30 (f 30), self 10                                        */
const SMALL = FlameTree.decode(
  encodeTree({
    frame: { name: "total" },
    self: 10,
    children: [
      {
        frame: { name: "a" },
        self: 5,
        children: [
          { frame: { name: "b" }, self: 30, children: [{ frame: { name: "d" }, self: 10 }] },
          { frame: { name: "c" }, self: 15 },
        ],
      },
      { frame: { name: "e" }, self: 0, children: [{ frame: { name: "f" }, self: 30 }] },
    ],
  }),
);
const named = (name: string): number =>
  Array.from({ length: SMALL.length }, (_, node) => node).find((node) => SMALL.nameOf(node) === name) ?? NONE;
const flat = (...children: [string, string, number][]): FlameTree =>
  FlameTree.decode(
    encodeTree({
      frame: { name: "total" },
      self: 0,
      children: children.map(([name, kind, self]) => ({ frame: { name, kind }, self })),
    }),
  );
const GENERATED = FlameTree.decode(generateTree(20_000, 500, 3));

describe("FlameTree", () => {
  it("places children side by side from their parent's left edge", () => {
    const starts = Object.fromEntries(
      Array.from({ length: SMALL.length }, (_, node) => [SMALL.nameOf(node), SMALL.start[node]]),
    );
    expect(starts).toEqual({ total: 0, a: 0, b: 0, d: 0, c: 40, e: 60, f: 60 });
    expect(SMALL.maxDepth).toBe(3);
  });

  it("walks between relatives", () => {
    expect(SMALL.children(ROOT).map((node) => SMALL.nameOf(node))).toEqual(["a", "e"]);
    expect(SMALL.parentOf(ROOT)).toBe(NONE);
    expect(SMALL.nextSibling(named("b"))).toBe(named("c"));
    expect(SMALL.nextSibling(named("c"))).toBe(NONE);
    expect(SMALL.pathTo(named("d")).map((node) => SMALL.nameOf(node))).toEqual(["total", "a", "b", "d"]);
    expect(SMALL.deepestRowBelow(named("e"))).toBe(2);
  });

  it("finds the node below a point, and nothing beside the boxes", () => {
    expect(SMALL.nodeAt(1, 59)).toBe(named("a"));
    expect(SMALL.nodeAt(1, 60)).toBe(named("e"));
    expect(SMALL.nodeAt(1, 95)).toBe(NONE);
    expect(SMALL.nodeAt(3, 12)).toBe(NONE);
    expect(SMALL.nodeAt(9, 0)).toBe(NONE);
  });

  it("finds by binary search what a scan of the row finds", () => {
    const random = randomSequence(11);
    for (let round = 0; round < 500; round++) {
      const row = Math.floor(random() * (GENERATED.maxDepth + 2));
      const value = random() * GENERATED.rootTotal;
      let scanned = NONE;
      for (let node = 0; node < GENERATED.length; node++) {
        const covers =
          GENERATED.depth[node] === row &&
          GENERATED.start[node] <= value &&
          value < GENERATED.start[node] + GENERATED.total[node];
        if (covers) scanned = node;
      }
      expect(GENERATED.nodeAt(row, value)).toBe(scanned);
    }
  });

  it("keeps every child inside its parent", () => {
    const outside: number[] = [];
    for (let node = 1; node < GENERATED.length; node++) {
      const parent = GENERATED.parent[node];
      const end = GENERATED.start[node] + GENERATED.total[node];
      const isInside =
        GENERATED.start[node] >= GENERATED.start[parent] && end <= GENERATED.start[parent] + GENERATED.total[parent];
      if (!isInside || GENERATED.depth[node] !== GENERATED.depth[parent] + 1) outside.push(node);
    }
    expect(outside).toEqual([]);
  });

  it("notices children that are not heaviest first, but lets `other` come last", () => {
    expect(flat(["a", "native", 5], ["b", "native", 2], ["other", "other", 9]).heaviestFirst).toBe(true);
    expect(flat(["a", "native", 2], ["b", "native", 5]).heaviestFirst).toBe(false);
    expect(GENERATED.heaviestFirst).toBe(true);
  });

  it("refuses columns that are no tree", () => {
    const buffer = encodeTree({ frame: { name: "total" }, self: 0, children: [{ frame: { name: "a" }, self: 1 }] });
    const headerLength = new DataView(buffer).getUint32(4, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, headerLength))) as {
      columns: { name: string; offset: number }[];
    };
    const depthOffset = header.columns.find(({ name }) => name === "depth")?.offset ?? 0;
    new DataView(buffer).setUint16(Math.ceil((8 + headerLength) / 8) * 8 + depthOffset + 2, 7, true);
    expect(() => FlameTree.decode(buffer)).toThrow(DecodeError);
  });

  it("is empty without value", () => {
    expect(FlameTree.decode(encodeTree({ frame: { name: "total" }, self: 0 })).isEmpty).toBe(true);
  });
});
