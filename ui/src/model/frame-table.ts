// The distinct frames of a tree. Strings are decoded when they are first asked for: a screen shows a few hundred of them.

import { packageOf, shortNameOf } from "./names.ts";
import type { FlameColumns, FrameColumns, StringColumns } from "./columns.ts";

/** Everything the details of a frame can show. Empty strings and line 0 mean unknown. */
export interface Frame {
  name: string;
  file: string;
  mapping: string;
  kind: string;
  line: number;
}

export class FrameTable {
  readonly length: number;
  readonly #columns: FrameColumns;
  readonly #kinds: readonly string[];
  readonly #strings: StringTable;
  readonly #shortNames: (string | undefined)[] = [];

  constructor(columns: FlameColumns) {
    this.length = columns.frames.name.length;
    this.#columns = columns.frames;
    this.#kinds = columns.header.kinds;
    this.#strings = new StringTable(columns.strings);
  }

  name(frame: number): string {
    return this.#strings.at(this.#columns.name[frame]);
  }

  file(frame: number): string {
    return this.#strings.at(this.#columns.file[frame]);
  }

  /** With which the function begins; 0 is unknown. */
  line(frame: number): number {
    return this.#columns.line[frame];
  }

  mapping(frame: number): string {
    return this.#strings.at(this.#columns.mapping[frame]);
  }

  kind(frame: number): string {
    return this.#kinds[this.#columns.kind[frame]] ?? "";
  }

  /** The name without arguments, type parameters and most of its path: what is drawn when the full name does not fit. */
  shortName(frame: number): string {
    return (this.#shortNames[frame] ??= shortNameOf(this.name(frame)));
  }

  package(frame: number): string {
    return packageOf(this.name(frame), this.file(frame), this.mapping(frame), this.kind(frame));
  }

  /** A folded remainder of a pruned tree, not a function. */
  isOther(frame: number): boolean {
    return this.kind(frame) === "other";
  }

  get(frame: number): Frame {
    return {
      name: this.name(frame),
      file: this.file(frame),
      mapping: this.mapping(frame),
      kind: this.kind(frame),
      line: this.line(frame),
    };
  }

  /** Every frame with this function name: one function has several frames when it lives in several binaries or files. */
  framesNamed(name: string): number[] {
    const found: number[] = [];
    for (let frame = 0; frame < this.length; frame++) if (this.name(frame) === name) found.push(frame);
    return found;
  }
}

class StringTable {
  readonly #columns: StringColumns;
  readonly #decoded: (string | undefined)[] = [];
  readonly #decoder = new TextDecoder();

  constructor(columns: StringColumns) {
    this.#columns = columns;
  }

  at(index: number): string {
    const known = this.#decoded[index];
    if (known !== undefined) return known;
    const { offsets, bytes } = this.#columns;
    const text =
      index + 1 < offsets.length ? this.#decoder.decode(bytes.subarray(offsets[index], offsets[index + 1])) : "";
    this.#decoded[index] = text;
    return text;
  }
}
