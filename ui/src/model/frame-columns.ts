// Frames that an answer names one by one, as the columns that a tree reads.

import type { FrameColumns, StringColumns } from "./columns.ts";

export interface NamedFrame {
  name: string;
  file: string;
  mapping: string;
  kind: string;
  line?: number;
}

export interface PackedFrames {
  frames: FrameColumns;
  strings: StringColumns;
  /** What the numbers of the kinds mean. */
  kinds: string[];
}

export function packFrames(named: readonly NamedFrame[]): PackedFrames {
  const texts = new TextTable();
  const kinds: string[] = [];
  const kindOf = (kind: string): number => {
    const known = kinds.indexOf(kind);
    return known === -1 ? kinds.push(kind) - 1 : known;
  };
  const frames: FrameColumns = {
    name: Uint32Array.from(named, ({ name }) => texts.add(name)),
    file: Uint32Array.from(named, ({ file }) => texts.add(file)),
    mapping: Uint32Array.from(named, ({ mapping }) => texts.add(mapping)),
    kind: Uint8Array.from(named, ({ kind }) => kindOf(kind)),
    line: Uint32Array.from(named, ({ line }) => line ?? 0),
  };
  return { frames, strings: texts.columns(), kinds };
}

/** Each text once; the first is the empty one. */
class TextTable {
  readonly #places = new Map<string, number>([["", 0]]);

  add(text: string): number {
    const known = this.#places.get(text);
    if (known !== undefined) return known;
    this.#places.set(text, this.#places.size);
    return this.#places.size - 1;
  }

  columns(): StringColumns {
    const encoder = new TextEncoder();
    const parts = [...this.#places.keys()].map((text) => encoder.encode(text));
    const offsets = new Uint32Array(parts.length + 1);
    parts.forEach((part, index) => (offsets[index + 1] = offsets[index] + part.length));
    const bytes = new Uint8Array(offsets[parts.length]);
    parts.forEach((part, index) => bytes.set(part, offsets[index]));
    return { offsets, bytes };
  }
}
