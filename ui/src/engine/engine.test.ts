import { describe, expect, it } from "vitest";
import { encodeTree, type TreeSpec } from "../../bench/generate.ts";
import { FlameTree, ROOT } from "../model/flame-tree.ts";
import { Camera } from "./camera.ts";
import { FrameColors, kindHue, shadeOf, type FlameTheme } from "./colors.ts";
import { step } from "./navigation.ts";
import { rowAt, rowTop, ROW_HEIGHT } from "./painter.ts";
import { TextFitter } from "./text.ts";

const leaf = (name: string, self: number, frame: object = {}): TreeSpec => ({ frame: { name, ...frame }, self });

describe("TextFitter", () => {
  // Ten pixels a character, wide characters twice that.
  const fitter = new TextFitter((text) =>
    [...text].reduce((width, character) => width + (character.charCodeAt(0) > 0x2fff ? 20 : 10), 0),
  );

  it("shows the name, then the short name, then a part with an ellipsis, then nothing", () => {
    expect(fitter.fit("crate::parse", "parse", 120)).toBe("crate::parse");
    expect(fitter.fit("crate::parse", "parse", 119)).toBe("parse");
    expect(fitter.fit("crate::parse", "parse", 45)).toBe("par…");
    expect(fitter.fit("crate::parse", "parse", 35)).toBe("");
  });

  it("never cuts a character in two", () => {
    expect(fitter.cut("𝛼𝛽𝛾𝛿𝜀", 60)).toMatch(/^(𝛼|𝛽|𝛾|𝛿|𝜀)+…$/u);
    expect(fitter.widthOf("漢字")).toBe(40);
  });
});

describe("Camera", () => {
  const whole = { left: 0, right: 1000 };

  it("eases to its target and then stands still", () => {
    const camera = new Camera(whole);
    camera.moveTo({ left: 200, right: 300 }, 0, true);
    const early = camera.at(60);
    expect(early.left).toBeGreaterThan(0);
    expect(early.left).toBeLessThan(200);
    expect(camera.isMoving).toBe(true);
    expect(camera.at(10_000)).toEqual({ left: 200, right: 300 });
    expect(camera.isMoving).toBe(false);
  });

  it("jumps where motion is not wanted", () => {
    const camera = new Camera(whole);
    camera.moveTo({ left: 200, right: 300 }, 0, false);
    expect(camera.at(0)).toEqual({ left: 200, right: 300 });
  });

  it("keeps the value below the pointer while zooming, and never leaves the whole", () => {
    const camera = new Camera(whole);
    camera.zoomAround(0.25, 0.5, 0);
    expect(camera.target).toEqual({ left: 125, right: 625 });
    camera.panBy(-5, 0);
    expect(camera.target).toEqual({ left: 0, right: 500 });
    camera.panBy(50, 0);
    expect(camera.target).toEqual({ left: 500, right: 1000 });
    camera.zoomAround(0.5, 100, 0);
    expect(camera.target).toEqual(whole);
    expect(camera.isWhole).toBe(true);
  });
});

describe("navigation", () => {
  const tree = FlameTree.decode(
    encodeTree({
      ...leaf("total", 0),
      children: [
        { ...leaf("a", 0), children: [leaf("a1", 50), leaf("a2", 10)] },
        { ...leaf("b", 0), children: [leaf("b1", 40)] },
      ],
    }),
  );
  const all = { left: 0, right: 100 };
  const go = (from: string, move: Parameters<typeof step>[2], view = all): string => {
    const node =
      Array.from({ length: tree.length }, (_, index) => index).find((index) => tree.nameOf(index) === from) ?? ROOT;
    return tree.nameOf(step(tree, node, move, view));
  };

  it("goes down to the heaviest child, up to the parent, along the row across parents", () => {
    expect(go("a", "deeper")).toBe("a1");
    expect(go("a1", "deeper")).toBe("a1");
    expect(go("a2", "shallower")).toBe("a");
    expect(go("total", "shallower")).toBe("total");
    expect(go("a2", "right")).toBe("b1");
    expect(go("b1", "left")).toBe("a2");
    expect(go("b1", "right")).toBe("b1");
  });

  it("stays inside what is seen", () => {
    expect(go("total", "deeper", { left: 60, right: 100 })).toBe("b");
    expect(go("a2", "right", { left: 0, right: 60 })).toBe("a2");
  });
});

describe("rows", () => {
  it("of a point are those drawn there, both ways up and scrolled", () => {
    for (const orientation of ["icicle", "flame"] as const) {
      for (const scroll of [0, 7, 250]) {
        const scene = { orientation, scroll, height: 600 };
        for (const row of [20, 25, 30]) expect(rowAt(rowTop(row, scene) + ROW_HEIGHT / 2, scene)).toBe(row);
      }
    }
  });
});

describe("colours", () => {
  const theme = {
    hues: Array.from({ length: 24 }, (_, index) => `hue${index}`),
    kernel: ["k0", "k1"],
    other: "other",
    root: "root",
  } as unknown as FlameTheme;
  const tree = FlameTree.decode(
    encodeTree({
      ...leaf("total", 0),
      children: [
        leaf("a::x", 5, { kind: "rust" }),
        leaf("a::y", 4, { kind: "rust" }),
        leaf("do_syscall_64", 3, { kind: "kernel" }),
        leaf("other", 2, { kind: "other" }),
      ],
    }),
  );
  const fill = (node: number, colorBy: "package" | "file" | "binary" = "package"): string =>
    new FrameColors(tree.frames, colorBy, 12).fill(tree.frame[node], theme, 0);

  it("are one for a package, and apart for kernel, remainder and root", () => {
    expect(fill(1)).toBe(fill(2));
    expect(fill(1)).toMatch(/^hue/);
    expect([fill(3), fill(4), fill(0)]).toEqual(["k0", "other", "root"]);
  });

  it("part neighbours in a stack by shade", () => {
    expect(shadeOf(5, 1)).not.toBe(shadeOf(5, 2));
  });
});

describe("the colour of a kind of code", () => {
  it("is its own, and the same in every picture", () => {
    const hues = ["native", "go", "rust", "jvm", "cpython", "v8js"].map((kind) => kindHue(kind, 12));
    expect(new Set(hues).size).toBe(hues.length);
    expect(kindHue("go", 12)).toBe(kindHue("go", 12));
    expect(kindHue("a kind of tomorrow", 12)).toBeLessThan(12);
  });
});
