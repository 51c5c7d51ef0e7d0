// Which boxes a picture needs. The walk skips a subtree as soon as its root is out of view or too narrow, so the cost follows
// the boxes drawn and not the nodes of the tree.

import { ROOT, type FlameTree } from "../model/flame-tree.ts";

/** What part of the tree is seen: values on the horizontal axis, rows on the vertical one. */
export interface Window {
  left: number;
  right: number;
  firstRow: number;
  lastRow: number;
  /** CSS pixels that `left..right` is spread over. */
  width: number;
  /** Narrower boxes are merged into slivers. */
  minimumWidth: number;
}

/** Boxes as columns, reused from picture to picture. */
export class BoxList {
  length = 0;
  node = new Uint32Array(4096);
  x = new Float32Array(4096);
  width = new Float32Array(4096);
  row = new Uint16Array(4096);

  clear(): void {
    this.length = 0;
  }

  push(node: number, x: number, width: number, row: number): void {
    if (this.length === this.node.length) this.#grow();
    this.node[this.length] = node;
    this.x[this.length] = x;
    this.width[this.length] = width;
    this.row[this.length] = row;
    this.length++;
  }

  #grow(): void {
    const capacity = this.node.length * 2;
    this.node = grown(new Uint32Array(capacity), this.node);
    this.x = grown(new Float32Array(capacity), this.x);
    this.width = grown(new Float32Array(capacity), this.width);
    this.row = grown(new Uint16Array(capacity), this.row);
  }
}

function grown<T extends Uint32Array | Float32Array | Uint16Array>(bigger: T, old: T): T {
  bigger.set(old);
  return bigger;
}

export interface Layout {
  boxes: BoxList;
  /** Runs of boxes too narrow to draw, merged per row; `node` is the first of the run. They keep the outline honest. */
  slivers: BoxList;
}

export function emptyLayout(): Layout {
  return { boxes: new BoxList(), slivers: new BoxList() };
}

/** Slivers less than this apart become one. */
const SLIVER_GAP = 1;

export function layOut(tree: FlameTree, window: Window, layout: Layout): Layout {
  const { boxes, slivers } = layout;
  boxes.clear();
  slivers.clear();
  if (tree.isEmpty || !(window.right > window.left)) return layout;

  const { start, total, self, depth, subtreeEnd, parent, frame, frames, heaviestFirst, length } = tree;
  const { left, width, firstRow, lastRow, minimumWidth } = window;
  const scale = width / (window.right - window.left);
  const openSliver = new Int32Array(lastRow + 2).fill(-1);

  const addSliver = (node: number, row: number, from: number, to: number): void => {
    if (row < firstRow) return;
    const x = Math.max(0, from);
    const end = Math.min(width, to);
    if (end <= x) return;
    const open = openSliver[row];
    if (open >= 0 && x - (slivers.x[open] + slivers.width[open]) < SLIVER_GAP) {
      slivers.width[open] = end - slivers.x[open];
      return;
    }
    openSliver[row] = slivers.length;
    slivers.push(node, x, end - x, row);
  };

  for (let node = ROOT; node < length;) {
    const row = depth[node];
    const x = (start[node] - left) * scale;
    const boxWidth = total[node] * scale;
    if (x + boxWidth <= 0) {
      node = subtreeEnd[node];
      continue;
    }
    if (x >= width) {
      // Later siblings lie further to the right still.
      node = node === ROOT ? length : subtreeEnd[parent[node]];
      continue;
    }
    if (boxWidth < minimumWidth && node !== ROOT) {
      const up = parent[node];
      const lastChild = subtreeEnd[up] - 1;
      const remainderFollows = lastChild > node && parent[lastChild] === up && frames.isOther(frame[lastChild]);
      if (!heaviestFirst) {
        addSliver(node, row, x, x + boxWidth);
        node = subtreeEnd[node];
      } else if (remainderFollows) {
        // `other` comes last whatever its weight: the light siblings end where it starts.
        addSliver(node, row, x, (start[lastChild] - left) * scale);
        node = lastChild;
      } else {
        addSliver(node, row, x, (start[up] + total[up] - self[up] - left) * scale);
        node = subtreeEnd[up];
      }
      continue;
    }
    if (row >= firstRow && row <= lastRow)
      boxes.push(node, Math.max(0, x), Math.min(width, x + boxWidth) - Math.max(0, x), row);
    node = row < lastRow ? node + 1 : subtreeEnd[node];
  }
  return layout;
}
