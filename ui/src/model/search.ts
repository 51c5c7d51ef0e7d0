// Search over the table of distinct frames, never over nodes: a million nodes share some ten thousand names.

import type { FlameTree } from "./flame-tree.ts";
import type { FrameTable } from "./frame-table.ts";
import { packagePathOf } from "./names.ts";

type Field = "fn" | "file" | "line" | "bin" | "pkg" | "kind";

export interface SearchPattern {
  field: Field;
  expression: RegExp;
}

export type ParsedSearch = { ok: true; pattern: SearchPattern | undefined } | { ok: false; message: string };

/** `fn: file: line: bin: pkg: kind:` choose the field as in a filter, function name is the default. Case matters only once the text has a capital letter. */
export function parseSearch(text: string): ParsedSearch {
  const prefixed = /^(fn|file|line|bin|pkg|kind):\s*(.*)$/s.exec(text);
  const field = (prefixed?.[1] ?? "fn") as Field;
  const source = prefixed?.[2] ?? text;
  if (source === "") return { ok: true, pattern: undefined };
  try {
    return { ok: true, pattern: { field, expression: new RegExp(source, hasCapital(source) ? "" : "i") } };
  } catch (error) {
    // Engines repeat the whole expression, which stands right beside: only the reason is news.
    const reason = error instanceof Error ? error.message.slice(error.message.lastIndexOf(": ") + 2) : String(error);
    return { ok: false, message: `not a regular expression: ${reason.toLowerCase()}` };
  }
}

/** A capital that is part of an escape (`\W`, `\S`) says nothing about case. */
function hasCapital(source: string): boolean {
  return /\p{Lu}/u.test(source.replace(/\\./g, ""));
}

const FRAMES_BETWEEN_CHECKS = 64;

/**
 * One flag a frame; `undefined` when the time was up first. The root never matches, nor does what was folded: nobody knows which
 * functions are in it. A
 * costly expression on ten thousand names must not stop the page; time is looked at between names only.
 */
export function matchFrames(
  frames: FrameTable,
  pattern: SearchPattern,
  isTimeUp: () => boolean = () => false,
): Uint8Array | undefined {
  const matched = new Uint8Array(frames.length);
  for (let frame = 1; frame < frames.length; frame++) {
    if (frame % FRAMES_BETWEEN_CHECKS === 0 && isTimeUp()) return undefined;
    if (!frames.isOther(frame) && pattern.expression.test(FRAME_TEXTS[pattern.field](frames, frame))) matched[frame] = 1;
  }
  return matched;
}

const FRAME_TEXTS: Record<Field, (frames: FrameTable, frame: number) => string> = {
  fn: (frames, frame) => frames.name(frame),
  file: (frames, frame) => frames.file(frame),
  line: (frames, frame) => placeText(frames.file(frame), frames.line(frame)),
  bin: (frames, frame) => frames.mapping(frame),
  pkg: (frames, frame) => packagePathOf(frames.name(frame)),
  kind: (frames, frame) => frames.kind(frame),
};

/** Where the function begins, `main.c:12`, as the filters of the server read it: one without a line is its file. */
function placeText(file: string, line: number): string {
  return line === 0 ? file : `${file}:${line}`;
}

/** The parts of a row of a table that it is searched by. */
export interface SearchedRow {
  name: string;
  file: string;
  mapping: string;
  kind: string;
}

const ROW_TEXTS: Record<Exclude<Field, "line">, (row: SearchedRow) => string> = {
  fn: ({ name }) => name,
  file: ({ file }) => file,
  bin: ({ mapping }) => mapping,
  pkg: ({ name }) => packagePathOf(name),
  kind: ({ kind }) => kind,
};

/** Frames of a tree, and which of them the same search has found. */
export interface MatchedFrames {
  frames: FrameTable;
  matched: Uint8Array;
}

/**
 * Which rows of a table a search keeps. A row tells no line: `line:` keeps what a matching frame of the tree is called, so that of what
 * is folded nothing is found by its line.
 */
export function rowFilter({ field, expression }: SearchPattern, found: MatchedFrames | undefined): (row: SearchedRow) => boolean {
  if (field !== "line") {
    const textOf = ROW_TEXTS[field];
    return (row) => expression.test(textOf(row));
  }
  const keys = new Set(found ? matchedKeys(found) : []);
  return (row) => keys.has(rowKey(row));
}

function matchedKeys({ frames, matched }: MatchedFrames): string[] {
  return Array.from(matched).flatMap((isMatched, frame) =>
    isMatched === 1 ? [rowKey({ name: frames.name(frame), file: frames.file(frame), mapping: frames.mapping(frame) })] : [],
  );
}

function rowKey({ name, file, mapping }: Pick<SearchedRow, "name" | "file" | "mapping">): string {
  return [name, file, mapping].join("\n");
}

export interface MatchSummary {
  /** The union: a stack counts once, however many of its frames match. In the tree's unit. */
  total: number;
  /** Topmost matching nodes, in pre-order: what "next match" steps through. */
  nodes: number[];
}

export function summarizeMatches(tree: FlameTree, matched: Uint8Array, from: number = 0): MatchSummary {
  const nodes: number[] = [];
  let total = 0;
  const end = from < tree.length ? tree.subtreeEnd[from] : 0;
  for (let node = from; node < end;) {
    if (matched[tree.frame[node]] === 0) {
      node++;
      continue;
    }
    total += tree.total[node];
    nodes.push(node);
    node = tree.subtreeEnd[node];
  }
  return { total, nodes };
}

/** The union below a node. When something above it matches, every stack through it does. */
export function matchedWithin(tree: FlameTree, matched: Uint8Array, node: number): number {
  const isBelowMatch = tree.pathTo(node).some((step) => matched[tree.frame[step]] === 1);
  return isBelowMatch ? tree.total[node] : summarizeMatches(tree, matched, node).total;
}

export function escapeForSearch(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
