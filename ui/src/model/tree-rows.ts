// The rows of a call tree that are unfolded, in order. One byte a node says what is open and one number a visible row which node it
// is: no object for a node, so that a million of them unfold at once.

import { NONE, ROOT, type FlameTree } from "./flame-tree.ts";

export const TREE_ORDERS = ["total", "self", "name"] as const;
export type TreeOrder = (typeof TREE_ORDERS)[number];

/** A step of the heaviest path is followed while it has this much of where it started. */
const WORTH_FOLLOWING = 0.5;

export class TreeRows {
  readonly tree: FlameTree;
  /** 1 where a node is open. */
  readonly #isOpen: Uint8Array;
  #order: TreeOrder;
  #top: number;
  #rows: Uint32Array;
  #length = 0;
  #nameRanks: Uint32Array | undefined;

  constructor(tree: FlameTree, order: TreeOrder = "total", top: number = ROOT) {
    this.tree = tree;
    this.#isOpen = new Uint8Array(tree.length);
    this.#rows = new Uint32Array(256);
    this.#order = order;
    this.#top = top;
    this.#build();
  }

  get length(): number {
    return this.#length;
  }

  get top(): number {
    return this.#top;
  }

  nodeAt(row: number): number {
    return row >= 0 && row < this.#length ? this.#rows[row] : NONE;
  }

  /** The row of a node, or `NONE` while something above it is closed. A scan of numbers: some milliseconds at a million. */
  rowOf(node: number): number {
    for (let row = 0; row < this.#length; row++) if (this.#rows[row] === node) return row;
    return NONE;
  }

  isOpen(node: number): boolean {
    return this.#isOpen[node] === 1;
  }

  hasChildren(node: number): boolean {
    return this.tree.subtreeEnd[node] > node + 1;
  }

  setOrder(order: TreeOrder): void {
    if (order === this.#order) return;
    this.#order = order;
    this.#build();
  }

  /** The node whose row is the first one. */
  setTop(top: number): void {
    if (top === this.#top) return;
    this.#top = top;
    this.#isOpen[top] = 1;
    this.#build();
  }

  open(node: number): void {
    if (this.isOpen(node) || !this.hasChildren(node)) return;
    this.#isOpen[node] = 1;
    this.#build();
  }

  close(node: number): void {
    if (!this.isOpen(node)) return;
    this.#isOpen[node] = 0;
    this.#build();
  }

  /** The node and everything below it. */
  openAll(node: number): void {
    this.#isOpen.fill(1, node, this.tree.subtreeEnd[node]);
    this.#build();
  }

  closeAll(node: number): void {
    this.#isOpen.fill(0, node, this.tree.subtreeEnd[node]);
    this.#build();
  }

  /** Down the heaviest children while each still has much of the node; answers where that ends. */
  openHeaviest(node: number): number {
    const enough = this.tree.total[node] * WORTH_FOLLOWING;
    let at = node;
    for (;;) {
      const next = heaviestChild(this.tree, at);
      if (next === NONE) break;
      this.#isOpen[at] = 1;
      if (this.tree.total[next] < enough || this.tree.frames.isOther(this.tree.frame[next])) break;
      at = next;
    }
    this.#build();
    return at;
  }

  /** Opens all that is above these nodes. */
  reveal(nodes: readonly number[]): void {
    const { tree } = this;
    let hasChanged = false;
    for (const node of nodes) {
      // What is open here was reached before, or is still to be checked upwards: the way ends at the top.
      for (let at = tree.parentOf(node); at !== NONE; at = tree.parentOf(at)) {
        if (this.#isOpen[at] === 0) hasChanged = true;
        this.#isOpen[at] = 1;
        if (at === this.#top) break;
      }
    }
    if (hasChanged) this.#build();
  }

  /** What was open in another tree of the same functions is open here: a refresh closes nothing. */
  openAs(before: TreeRows): void {
    const old = before.tree;
    // Pairs of the same path: open nodes of the old tree that this one has, too.
    const pairs: [number, number][] = [[ROOT, ROOT]];
    for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
      const [oldNode, node] = pair;
      if (!before.isOpen(oldNode)) continue;
      this.#isOpen[node] = 1;
      // A name may come several times, of several files: they are paired in their order.
      const byName = new Map<string, number[]>();
      for (const child of this.tree.children(node).toReversed()) {
        const name = this.tree.nameOf(child);
        const alike = byName.get(name);
        if (alike) alike.push(child);
        else byName.set(name, [child]);
      }
      for (let child = old.firstChild(oldNode); child !== NONE; child = old.nextSibling(child)) {
        const found = byName.get(old.nameOf(child))?.pop();
        if (found !== undefined && before.isOpen(child)) pairs.push([child, found]);
      }
    }
    this.#build();
  }

  #build(): void {
    const { tree } = this;
    this.#length = 0;
    if (tree.length === 0) return;
    // Sorted children go onto the stack the other way round, so that the first is taken first.
    const waiting: number[] = [this.#top];
    for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
      this.#append(node);
      if (this.#isOpen[node] === 0) continue;
      const children = tree.children(node);
      this.#sort(children);
      for (let index = children.length - 1; index >= 0; index--) waiting.push(children[index]);
    }
  }

  #append(node: number): void {
    if (this.#length === this.#rows.length) {
      const larger = new Uint32Array(Math.min(this.tree.length, this.#rows.length * 2) + 1);
      larger.set(this.#rows);
      this.#rows = larger;
    }
    this.#rows[this.#length++] = node;
  }

  /** What was folded stands last in every order: it is no function. */
  #sort(children: number[]): void {
    const { tree } = this;
    if (children.length < 2 || (this.#order === "total" && tree.heaviestFirst)) return;
    const { frame, frames } = tree;
    const rank = (node: number): number => (frames.isOther(frame[node]) ? 1 : 0);
    const ranks = this.#order === "name" ? this.#namesRanked() : undefined;
    const values = this.#order === "self" ? tree.self : tree.total;
    children.sort(
      (left, right) =>
        rank(left) - rank(right) ||
        (ranks ? ranks[frame[left]] - ranks[frame[right]] : values[right] - values[left]) ||
        left - right,
    );
  }

  /** The place of each frame's name in the alphabet, so that names are compared once. */
  #namesRanked(): Uint32Array {
    if (this.#nameRanks) return this.#nameRanks;
    const { frames } = this.tree;
    const names = Array.from({ length: frames.length }, (_, frame) => frames.name(frame));
    const order = names.map((_, frame) => frame);
    order.sort((left, right) => (names[left] < names[right] ? -1 : names[left] > names[right] ? 1 : left - right));
    this.#nameRanks = new Uint32Array(frames.length);
    for (const [rank, frame] of order.entries()) this.#nameRanks[frame] = rank;
    return this.#nameRanks;
  }
}

function heaviestChild(tree: FlameTree, node: number): number {
  let heaviest = NONE;
  for (let child = tree.firstChild(node); child !== NONE; child = tree.nextSibling(child)) {
    if (heaviest === NONE || tree.total[child] > tree.total[heaviest]) heaviest = child;
  }
  return heaviest;
}
