// A node's place in a link: a fingerprint of the names from the root down to it, so that the link still finds its node after a
// refresh, in another range, or on another host, where every index differs.

import { NONE, ROOT, type FlameTree } from "./flame-tree.ts";
import { hashPair, hashString } from "./hash.ts";

const SECOND_SEED = 0x9e3779b9;

export function pathHash(tree: FlameTree, node: number): string {
  let low = 0;
  let high = SECOND_SEED;
  for (const step of tree.pathTo(node)) {
    if (step === ROOT) continue;
    const name = hashString(tree.nameOf(step));
    low = hashPair(low, name);
    high = hashPair(high, name);
  }
  return hex(high) + hex(low);
}

/** The node with this fingerprint, or `NONE`. One pass; names are hashed once a frame. */
export function findPath(tree: FlameTree, hash: string): number {
  if (!/^[0-9a-f]{16}$/.test(hash)) return NONE;
  const wantedHigh = Number.parseInt(hash.slice(0, 8), 16);
  const wantedLow = Number.parseInt(hash.slice(8), 16);
  const nameHashes = new Uint32Array(tree.frames.length);
  for (let frame = 0; frame < nameHashes.length; frame++) nameHashes[frame] = hashString(tree.frames.name(frame));
  const lowAtDepth = new Uint32Array(tree.maxDepth + 1);
  const highAtDepth = new Uint32Array(tree.maxDepth + 1);
  highAtDepth[0] = SECOND_SEED;
  for (let node = 1; node < tree.length; node++) {
    const depth = tree.depth[node];
    const name = nameHashes[tree.frame[node]];
    lowAtDepth[depth] = hashPair(lowAtDepth[depth - 1], name);
    highAtDepth[depth] = hashPair(highAtDepth[depth - 1], name);
    if (lowAtDepth[depth] === wantedLow && highAtDepth[depth] === wantedHigh) return node;
  }
  return NONE;
}

function hex(value: number): string {
  return value.toString(16).padStart(8, "0");
}
