// Nested JSON trees (`/api/v1/callers`, `/api/v1/tree`) as the columns that the engine draws.

import type { FlameHeader, PartialHead } from "./columns.ts";
import { FlameTree } from "./flame-tree.ts";

/** A node as the server nests it. */
export interface NestedNode {
  name: string;
  file: string;
  mapping: string;
  kind: string;
  line: number;
  total: number;
  self: number;
  children: NestedNode[];
}

/** `/api/v1/callers`. Both trees hang below a root; `null` where nothing matched. */
export interface CallersAnswer extends PartialHead {
  type: string;
  unit: string;
  from: number;
  to: number;
  /** Of all stacks, and of those with the function. */
  total: number;
  function_total: number;
  hint?: string;
  callers: NestedNode | null;
  callees: NestedNode | null;
}

export interface CallersTrees {
  header: Pick<CallersAnswer, "unit" | "total" | "function_total" | "hint">;
  /** The root of both is the function itself, whose `self` in the callees is its own cost. */
  callers: FlameTree;
  callees: FlameTree;
}

export function callersTrees(answer: CallersAnswer, name: string): CallersTrees {
  const { unit, total, function_total: functionTotal, hint } = answer;
  return {
    header: { unit, total, function_total: functionTotal, ...(hint === undefined ? {} : { hint }) },
    callers: flameTreeOf(answer, functionRoot(answer.callers, name)),
    callees: flameTreeOf(answer, functionRoot(answer.callees, name)),
  };
}

/**
 * The function in the root's place. It has several nodes there when it lives in several files or binaries: their relatives
 * are then all children of the one root, which bears its name.
 */
function functionRoot(root: NestedNode | null, name: string): NestedNode | null {
  if (root === null || root.children.length === 0) return null;
  if (root.children.length === 1) return root.children[0];
  return {
    ...root,
    name,
    self: root.children.reduce((sum, { self }) => sum + self, 0),
    children: root.children.flatMap(({ children }) => children).toSorted((left, right) => right.total - left.total),
  };
}

/** Without recursion: stacks may be deeper than a script's. */
export function flameTreeOf(head: Omit<CallersAnswer, "callers" | "callees">, root: NestedNode | null): FlameTree {
  const nodes: { node: NestedNode; depth: number }[] = [];
  const waiting = root === null ? [] : [{ node: root, depth: 0 }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    nodes.push(next);
    const { children } = next.node;
    for (let index = children.length - 1; index >= 0; index--)
      waiting.push({ node: children[index], depth: next.depth + 1 });
  }

  const frames = new FrameCollector();
  const count = nodes.length;
  const columns = {
    frame: new Uint32Array(count),
    depth: new Uint16Array(count),
    subtreeEnd: new Uint32Array(count),
    total: new Float64Array(count),
    self: new Float64Array(count),
  };
  const openAt: number[] = [];
  for (const [index, { node, depth }] of nodes.entries()) {
    columns.frame[index] = frames.indexOf(node, index === 0);
    columns.depth[index] = depth;
    columns.total[index] = node.total;
    columns.self[index] = node.self;
    while (openAt.length > depth) columns.subtreeEnd[openAt.pop() ?? 0] = index;
    openAt.push(index);
  }
  for (const index of openAt) columns.subtreeEnd[index] = count;
  const header: FlameHeader = {
    schema: "candela/callers/v1",
    type: head.type,
    unit: head.unit,
    from: head.from,
    to: head.to,
    total: root?.total ?? 0,
    samples: null,
    nodes: count,
    frames: frames.length,
    pruned: 0,
    kinds: frames.kinds,
    columns: [],
  };
  return new FlameTree({ header, nodes: columns, ...frames.columns() });
}

/** Distinct frames and strings in the order in which they are met. */
class FrameCollector {
  readonly kinds: string[] = [];
  readonly #known = new Map<string, number>();
  readonly #strings = new Map<string, number>([["", 0]]);
  readonly #entries: { name: number; file: number; mapping: number; kind: number; line: number }[] = [];

  get length(): number {
    return this.#entries.length;
  }

  /** The root has a frame of its own, the first: the engine draws it apart. */
  indexOf({ name, file, mapping, kind, line }: NestedNode, isRoot: boolean): number {
    const key = isRoot ? "" : [name, file, mapping, kind, line].join("\u0000");
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const index = this.#entries.length;
    this.#entries.push({
      name: this.#string(name),
      file: this.#string(file),
      mapping: this.#string(mapping),
      kind: this.#kind(kind),
      line,
    });
    this.#known.set(key, index);
    return index;
  }

  columns() {
    const entries = this.#entries;
    const texts = [...this.#strings.keys()].map((text) => new TextEncoder().encode(text));
    const offsets = new Uint32Array(texts.length + 1);
    for (const [index, text] of texts.entries()) offsets[index + 1] = offsets[index] + text.length;
    const bytes = new Uint8Array(offsets[texts.length]);
    for (const [index, text] of texts.entries()) bytes.set(text, offsets[index]);
    return {
      frames: {
        name: Uint32Array.from(entries, ({ name }) => name),
        file: Uint32Array.from(entries, ({ file }) => file),
        mapping: Uint32Array.from(entries, ({ mapping }) => mapping),
        kind: Uint8Array.from(entries, ({ kind }) => kind),
        line: Uint32Array.from(entries, ({ line }) => line),
      },
      strings: { offsets, bytes },
    };
  }

  #string(text: string): number {
    const known = this.#strings.get(text);
    if (known !== undefined) return known;
    this.#strings.set(text, this.#strings.size);
    return this.#strings.size - 1;
  }

  #kind(kind: string): number {
    const known = this.kinds.indexOf(kind);
    if (known !== -1) return known;
    this.kinds.push(kind);
    return this.kinds.length - 1;
  }
}
