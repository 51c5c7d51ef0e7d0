import { describe, expect, it } from "vitest";
import { chanceOf, chanceText, pickChance, type NodeChance } from "./node-chance.ts";

const FRAMES = [
  { q: null, is_significant: null },
  { q: 0.0004, is_significant: true },
  { q: 0.8, is_significant: false },
];
const FRAME = [0, 1, 1, 2];

function texts(chance: NodeChance | undefined): (string | undefined)[] {
  return chance ? FRAME.map((_, node) => chanceText(chance, node)) : [];
}

describe("chance of a node", () => {
  it("is told by its own test, else by its function", () => {
    const chance = chanceOf({ q: [null, 0.3, null, 0.0123], is_significant: [null, false, null, true] }, FRAMES, FRAME);
    expect(texts(chance)).toEqual([
      undefined,
      "here may be chance (q 0.300)",
      "not tested here; the function everywhere: significant (q below 0.001)",
      "here significant (q 0.012)",
    ]);
    expect([...(chance?.isUncertain ?? [])]).toEqual([0, 1, 0, 0]);
  });

  it("is that of functions where a server tests no nodes", () => {
    const chance = chanceOf({}, FRAMES, FRAME);
    expect([...(chance?.isUncertain ?? [])]).toEqual([0, 0, 0, 1]);
    expect(texts(chance)[3]).toBe("not tested here; the function everywhere: may be chance (q 0.800)");
  });

  it("is unknown where nothing was tested", () => {
    expect(chanceOf({ q: [null], is_significant: [null] }, [{}], [0])).toBeUndefined();
  });

  it("stays with its node", () => {
    const chance = chanceOf({}, FRAMES, FRAME);
    const picked = chance && pickChance(chance, Uint32Array.of(0, 3));
    expect(picked && chanceText(picked, 1)).toBe("not tested here; the function everywhere: may be chance (q 0.800)");
  });
});
