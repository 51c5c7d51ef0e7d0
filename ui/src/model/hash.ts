// FNV-1a, for colours and for the fingerprints of paths in links. Not for anything an opponent may choose.

const OFFSET_BASIS = 0x811c9dc5;
const PRIME = 0x01000193;

export function hashString(text: string, seed: number = OFFSET_BASIS): number {
  let hash = seed >>> 0;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), PRIME);
  return hash >>> 0;
}

export function hashPair(left: number, right: number): number {
  let hash = left;
  for (let shift = 0; shift < 32; shift += 8) hash = Math.imul(hash ^ ((right >>> shift) & 0xff), PRIME);
  // A final mix: FNV alone leaves the low bits of short inputs too alike.
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}
