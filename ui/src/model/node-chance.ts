// Whether what became of a node may be chance: what its own test says, or, where the node was not reached, that of its function.

/** By node. */
export interface NodeChance {
  /** 1 where the change may be chance, 0 where it is significant or nobody knows. */
  isUncertain: Uint8Array;
  origin: Uint8Array;
  /** Of the significant ones with this q or less so large a part is chance; not a number where nobody knows. */
  q: Float64Array;
}

/** Whose test it is. */
export const NOBODY = 0;
export const OWN_TEST = 1;
export const OF_FUNCTION = 2;

export interface Verdicts {
  q?: (number | null)[];
  is_significant?: (boolean | null)[];
}

export interface FunctionVerdict {
  q?: number | null;
  is_significant?: boolean | null;
}

/** Nothing where nobody knows anything. A server that tests no nodes still tests functions. */
export function chanceOf(nodes: Verdicts, frames: readonly FunctionVerdict[], frame: ArrayLike<number>): NodeChance | undefined {
  const chance = emptyChance(frame.length);
  for (let node = 0; node < frame.length; node++) {
    const own = nodes.is_significant?.[node] ?? null;
    const { is_significant: ofFunction = null, q = null } = frames[frame[node]] ?? {};
    const isSignificant = own ?? ofFunction;
    if (isSignificant === null) continue;
    chance.isUncertain[node] = isSignificant ? 0 : 1;
    chance.origin[node] = own === null ? OF_FUNCTION : OWN_TEST;
    chance.q[node] = (own === null ? q : nodes.q?.[node]) ?? Number.NaN;
  }
  return chance.origin.some((origin) => origin !== NOBODY) ? chance : undefined;
}

export function pickChance({ isUncertain, origin, q }: NodeChance, nodes: Uint32Array): NodeChance {
  return {
    isUncertain: Uint8Array.from(nodes, (node) => isUncertain[node]),
    origin: Uint8Array.from(nodes, (node) => origin[node]),
    q: Float64Array.from(nodes, (node) => q[node]),
  };
}

/** Of the total of a node, in a line; nothing where nobody knows. */
export function chanceText({ isUncertain, origin, q }: NodeChance, node: number): string | undefined {
  if (origin[node] === NOBODY) return undefined;
  const verdict = isUncertain[node] === 1 ? "may be chance" : "significant";
  const value = formatQ(q[node]);
  const figure = value === undefined ? "" : ` (q ${value})`;
  // Below what is not known to have changed no place is tested: there would be too many to tell any from chance.
  return origin[node] === OWN_TEST ? `here ${verdict}${figure}` : `not tested here; the function everywhere: ${verdict}${figure}`;
}

function formatQ(q: number): string | undefined {
  if (Number.isNaN(q)) return undefined;
  return q < 0.001 ? "below 0.001" : q.toFixed(3);
}

function emptyChance(nodes: number): NodeChance {
  return { isUncertain: new Uint8Array(nodes), origin: new Uint8Array(nodes), q: new Float64Array(nodes).fill(Number.NaN) };
}
