// What the lines and the instructions of the pinned function took, asked of the server for the call path on the screen.

import { computed, effect, signal } from "@preact/signals";
import { selectionParameters, type Selection } from "../../api/client.ts";
import type { Parameters } from "../../api/requests.ts";
import { ROOT } from "../../model/flame-tree.ts";
import type { DisassemblyAnswer, SourceAnswer } from "../../model/source-rows.ts";
import { pathOf } from "../actions.ts";
import { zoomedNode } from "../highlight.ts";
import { Loader } from "../loader.ts";
import { flameTree, lookedAtFile, question, requests, selection, viewField } from "../store.ts";

const pinned = viewField("pinned");
const codeFile = viewField("codeFile");
const codeBinary = viewField("codeBinary");
const codeChoice = viewField("code");
const zoom = viewField("zoom");

interface Question {
  name: string;
  /** What is asked, whatever the moment. */
  key: string;
  /** The same of any range: in another one the reader stays at the line. */
  view: string;
}

/** An answer with its question: the one on the screen may be of what was asked before. */
export interface Answered<T> extends Question {
  answer: T;
}

const sourceLoader = new Loader<Answered<SourceAnswer>>("the source");
const codeLoader = new Loader<Answered<DisassemblyAnswer>>("the instructions");
export const source = sourceLoader.state;
export const code = codeLoader.state;

/** Files that the reader opened, by the name that debug information has. They stay in this page. */
export const openedFiles = signal<ReadonlyMap<string, string>>(new Map());

/** The way to what is zoomed to, as one text so that an equal one asks nothing anew; `undefined` while the tree is on its way. */
const zoomPath = computed((): string | undefined => {
  if (zoom.value === "") return "";
  const tree = flameTree.value;
  if (!tree) return undefined;
  const node = zoomedNode.value;
  return node === ROOT ? "" : pathOf(tree, node).join("\n");
});

/** Whether values are those of one call path, and not of all that calls the function. */
export const isOfCallPath = computed(() => selection.value.path.length > 0 || (zoomPath.value ?? "") !== "");

interface AskedQuestion extends Question {
  parameters: Parameters;
}

const asked = computed((): AskedQuestion | undefined => {
  const [name, file, binary] = [pinned.value, codeFile.value, codeBinary.value];
  const path = zoomPath.value;
  if (name === "" || path === undefined) return undefined;
  const selected: Selection = path === "" ? selection.value : { ...selection.value, path: path.split("\n") };
  const place: Parameters = [
    ["function", name],
    // Of a profile file `file` is which one.
    ...(file === "" ? [] : [[lookedAtFile.value ? "source_file" : "file", file] as const]),
    ...(binary === "" ? [] : [["binary", binary] as const]),
  ];
  const { query, type, filters, path: way } = selected;
  return {
    name,
    parameters: [...place, ...selectionParameters(selected)],
    key: JSON.stringify([question.peek(), path, place]),
    view: JSON.stringify([query, type, filters, way, place]),
  };
});

const showsInstructions = computed(() => codeChoice.value !== "source");

/** Loads while the pane is looked at; the function that it returns ends that. */
export function followSource(): () => void {
  const ends = [
    effect(() => {
      if (asked.value) ask("source", sourceLoader, asked.value);
    }),
    effect(() => {
      if (asked.value && showsInstructions.value) ask("disassembly", codeLoader, asked.value);
    }),
  ];
  return () => ends.forEach((end) => end());
}

function ask<T>(route: string, loader: Loader<Answered<T>>, { parameters, ...about }: AskedQuestion): void {
  void loader.load(about.key, async (abort) => ({ ...about, answer: await requests.json<T>(route, parameters, abort) }));
}
