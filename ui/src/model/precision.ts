// How sure a share is, and what of a profile has no name: what the quality bar says about the picture itself.

import type { FlameTree } from "./flame-tree.ts";

const NORMAL_95 = 1.96;

/** Half the width of the 95 % interval of a share, of so many samples. Of one sample each: overdispersion comes on top. */
export function halfWidth(share: number, samples: number): number {
  if (!(samples > 0)) return 1;
  return NORMAL_95 * Math.sqrt((share * (1 - share)) / samples);
}

/** `10 ± 3.0 %`: no more digits than the interval bears. */
export function formatInterval(share: number, samples: number): string {
  const half = 100 * halfWidth(share, samples);
  const digits = half >= 10 ? 0 : half >= 0.1 ? 1 : 2;
  return `${(100 * share).toFixed(0)} ± ${half.toFixed(digits)} %`;
}

/** Samples it takes for the interval of a share to have this half width. */
export function samplesFor(share: number, half: number): number {
  return Math.ceil(((NORMAL_95 / half) ** 2) * share * (1 - share));
}

/** An address, alone or behind its binary. */
const ADDRESS = /(^|\+)0x[0-9a-f]+$/i;

/** The part of the values whose own frame has no name, and the binaries these are of, the largest first. */
export function unnamed(tree: FlameTree): { share: number; binaries: { name: string; value: number }[] } {
  const byBinary = new Map<string, number>();
  let sum = 0;
  for (let node = 1; node < tree.length; node++) {
    const own = tree.self[node];
    if (own <= 0 || !ADDRESS.test(tree.nameOf(node))) continue;
    sum += own;
    const binary = tree.frames.mapping(tree.frame[node]) || "unknown binary";
    byBinary.set(binary, (byBinary.get(binary) ?? 0) + own);
  }
  const binaries = [...byBinary].map(([name, value]) => ({ name, value }));
  return {
    share: tree.rootTotal > 0 ? sum / tree.rootTotal : 0,
    binaries: binaries.toSorted((left, right) => right.value - left.value),
  };
}
