// The merged tree as columns, with what drawing needs derived once: where each node starts, its parent, and its row.
// 42 bytes a node in all, 26 of them the answer itself.

import { DecodeError, decodeColumns, type FlameColumns, type FlameHeader } from "./columns.ts";
import { FrameTable } from "./frame-table.ts";

export const ROOT = 0;
/** No node: the parent of the root, the answer of a search that found nothing. */
export const NONE = -1;

export class FlameTree {
  readonly header: FlameHeader;
  readonly frames: FrameTable;
  readonly length: number;
  readonly frame: Uint32Array;
  readonly depth: Uint16Array;
  readonly subtreeEnd: Uint32Array;
  readonly total: Float64Array;
  readonly self: Float64Array;
  /** Left edge in units of value: 0 for the root, children side by side from their parent's left edge. */
  readonly start: Float64Array;
  /** The root's entry is 0, itself; ask `parentOf` where that matters. */
  readonly parent: Uint32Array;
  /** Nodes of row `d` are `rowNodes[rowOffset[d] .. rowOffset[d + 1]]`, from left to right. */
  readonly rowOffset: Uint32Array;
  readonly rowNodes: Uint32Array;
  readonly maxDepth: number;
  /** Children come heaviest first everywhere (`other` may come last): a walk may stop at the first sliver. */
  readonly heaviestFirst: boolean;

  constructor(columns: FlameColumns) {
    const { frame, depth, subtreeEnd, total, self } = columns.nodes;
    this.header = columns.header;
    this.frames = new FrameTable(columns);
    this.length = frame.length;
    this.frame = frame;
    this.depth = depth;
    this.subtreeEnd = subtreeEnd;
    this.total = total;
    this.self = self;
    this.start = new Float64Array(this.length);
    this.parent = new Uint32Array(this.length);
    const { maxDepth, heaviestFirst } = this.#placeNodes();
    this.maxDepth = maxDepth;
    this.heaviestFirst = heaviestFirst;
    this.rowOffset = new Uint32Array(maxDepth + 2);
    this.rowNodes = new Uint32Array(this.length);
    this.#indexRows();
  }

  static decode(buffer: ArrayBuffer): FlameTree {
    return new FlameTree(decodeColumns(buffer));
  }

  get isEmpty(): boolean {
    return this.length === 0 || !(this.total[ROOT] > 0);
  }

  get rootTotal(): number {
    return this.length === 0 ? 0 : this.total[ROOT];
  }

  parentOf(node: number): number {
    return node === ROOT ? NONE : this.parent[node];
  }

  nameOf(node: number): string {
    return this.frames.name(this.frame[node]);
  }

  firstChild(node: number): number {
    const child = node + 1;
    return child < this.subtreeEnd[node] ? child : NONE;
  }

  nextSibling(node: number): number {
    if (node === ROOT) return NONE;
    const next = this.subtreeEnd[node];
    return next < this.subtreeEnd[this.parent[node]] ? next : NONE;
  }

  /** From the root to the node, both included. */
  pathTo(node: number): number[] {
    const path: number[] = [];
    for (let at = node; at !== NONE; at = this.parentOf(at)) path.push(at);
    return path.toReversed();
  }

  children(node: number, limit: number = Number.POSITIVE_INFINITY): number[] {
    const found: number[] = [];
    for (let child = this.firstChild(node); child !== NONE && found.length < limit; child = this.nextSibling(child))
      found.push(child);
    return found;
  }

  isWithin(node: number, ancestor: number): boolean {
    return node >= ancestor && node < this.subtreeEnd[ancestor];
  }

  deepestRowBelow(node: number): number {
    let deepest = this.depth[node];
    for (let at = node; at < this.subtreeEnd[node]; at++) if (this.depth[at] > deepest) deepest = this.depth[at];
    return deepest;
  }

  /** The node of this row that covers `value` on the horizontal axis, by binary search. */
  nodeAt(row: number, value: number): number {
    if (row < 0 || row > this.maxDepth) return NONE;
    let low = this.rowOffset[row];
    let high = this.rowOffset[row + 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.start[this.rowNodes[middle]] <= value) low = middle + 1;
      else high = middle;
    }
    if (low === this.rowOffset[row]) return NONE;
    const node = this.rowNodes[low - 1];
    return value < this.start[node] + this.total[node] ? node : NONE;
  }

  #placeNodes(): { maxDepth: number; heaviestFirst: boolean } {
    const { length, depth, subtreeEnd, total, start, parent, frame, frames } = this;
    const openNode: number[] = [];
    const nextStart: number[] = [0];
    const previousTotal: number[] = [Number.POSITIVE_INFINITY];
    let maxDepth = 0;
    let heaviestFirst = true;
    for (let node = 0; node < length; node++) {
      const row = depth[node];
      const isRoot = node === ROOT;
      const parentNode = isRoot ? ROOT : openNode[row - 1];
      const nested = isRoot
        ? row === 0
        : row > 0 && row <= depth[node - 1] + 1 && subtreeEnd[node] <= subtreeEnd[parentNode];
      if (!nested || subtreeEnd[node] <= node || subtreeEnd[node] > length || frame[node] >= frames.length) {
        throw new DecodeError(`node ${node} of the flame graph does not fit into its parent: the answer is damaged`);
      }
      parent[node] = parentNode;
      start[node] = nextStart[row];
      nextStart[row] += total[node];
      nextStart[row + 1] = start[node];
      openNode[row] = node;
      if (total[node] > previousTotal[row] && !frames.isOther(frame[node])) heaviestFirst = false;
      if (!frames.isOther(frame[node])) previousTotal[row] = total[node];
      previousTotal[row + 1] = Number.POSITIVE_INFINITY;
      if (row > maxDepth) maxDepth = row;
    }
    return { maxDepth, heaviestFirst };
  }

  #indexRows(): void {
    const { length, depth, rowOffset, rowNodes } = this;
    for (let node = 0; node < length; node++) rowOffset[depth[node] + 1]++;
    for (let row = 1; row < rowOffset.length; row++) rowOffset[row] += rowOffset[row - 1];
    const next = rowOffset.slice();
    for (let node = 0; node < length; node++) rowNodes[next[depth[node]]++] = node;
  }
}
