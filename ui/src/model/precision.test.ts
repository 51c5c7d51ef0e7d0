import { describe, expect, it } from "vitest";
import { encodeTree } from "../../bench/generate.ts";
import { FlameTree } from "./flame-tree.ts";
import { formatInterval, halfWidth, samplesFor, unnamed } from "./precision.ts";

describe("the interval of a share", () => {
  it("narrows with the root of the samples", () => {
    expect(halfWidth(0.1, 384)).toBeCloseTo(0.03, 3);
    expect(formatInterval(0.1, 384)).toBe("10 ± 3.0 %");
    expect(formatInterval(0.1, 10)).toBe("10 ± 19 %");
    expect(formatInterval(0.1, 1e6)).toBe("10 ± 0.06 %");
    expect(halfWidth(0.1, 0)).toBe(1);
  });

  it("says how many samples a narrower one takes", () => {
    expect(samplesFor(0.1, 0.01)).toBe(3458);
  });
});

describe("what has no name", () => {
  it("is counted where it is the frame's own, by binary", () => {
    const tree = FlameTree.decode(
      encodeTree({
        frame: { name: "total" },
        self: 0,
        children: [
          { frame: { name: "main" }, self: 6, children: [{ frame: { name: "libc.so+0x1f0" }, self: 3 }] },
          { frame: { name: "0xdead" }, self: 1 },
        ],
      }),
    );
    expect(unnamed(tree).share).toBeCloseTo(0.4);
  });
});
