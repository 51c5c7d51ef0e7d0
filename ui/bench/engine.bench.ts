// Engine timings without a browser: `npm run bench`. Targets U3–U5 (`layOut` ≤ 6 ms p95, hit ≤ 50 µs, search ≤ 100 ms at 1 M nodes).

import { bench, describe } from "vitest";
import { emptyLayout, layOut } from "../src/engine/layout.ts";
import { FlameTree } from "../src/model/flame-tree.ts";
import { findPath, pathHash } from "../src/model/path-hash.ts";
import { matchFrames, summarizeMatches } from "../src/model/search.ts";
import { generateTree, randomSequence } from "./generate.ts";

for (const size of [50_000, 1_000_000]) {
  const buffer = generateTree(size, 10_000, 1);
  const tree = FlameTree.decode(buffer);
  const random = randomSequence(2);
  const layout = emptyLayout();
  const pattern = { field: "fn", expression: /function_(12|99)\d*/iu } as const;
  const lastHash = pathHash(tree, tree.length - 1);

  describe(`${size.toLocaleString("en")} nodes`, () => {
    bench("decode and index", () => {
      FlameTree.decode(buffer);
    });
    for (const minimumWidth of [3, 1]) {
      bench(`lay out a random view, ≥ ${minimumWidth} px`, () => {
        const width = tree.rootTotal * random() ** 4;
        const left = random() * (tree.rootTotal - width);
        layOut(tree, { left, right: left + width, firstRow: 0, lastRow: 50, width: 1500, minimumWidth }, layout);
      });
    }
    bench("hit test", () => {
      tree.nodeAt(Math.floor(random() * 30), random() * tree.rootTotal);
    });
    bench("search names", () => {
      matchFrames(tree.frames, pattern);
    });
    bench("sum the matches", () => {
      summarizeMatches(tree, matchFrames(tree.frames, pattern) ?? new Uint8Array(tree.frames.length));
    });
    bench("find a path", () => {
      findPath(tree, lastHash);
    });
  });
}
