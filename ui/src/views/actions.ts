// Small things several panes do: copy to the clipboard with a word of confirmation, share a link, find the flame graph.

import type { ChartView } from "../engine/chart-view.ts";
import type { FlameView } from "../engine/flame-view.ts";
import { diffCommand, fileCommand, fileDiffCommand, queryCommand, seriesCommand, serverOfPage, shellQuote } from "../model/command.ts";
import { exactPattern, withFilter, type FilterKind } from "../model/filters.ts";
import { NONE, ROOT, type FlameTree } from "../model/flame-tree.ts";
import { pathHash } from "../model/path-hash.ts";
import { parseFileReference } from "../model/file-reference.ts";
import type { PaneChoice } from "../state/schema.ts";
import { printLink } from "../state/url.ts";
import { withAllNodes } from "./folded.ts";
import { highlight, selectedNode, zoomedNode } from "./highlight.ts";
import { announce } from "./notice.ts";
import { fixedView, flameTree, hasServer, lookedAtFile, range, shownBase, update, view } from "./store.ts";

/** The chart of threads, while it is looked at. */
export const chartView: { current: ChartView | undefined } = { current: undefined };

/** The mounted engine, while there is one. */
export const flameView: { current: FlameView | undefined } = { current: undefined };

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    announce(`Copied ${what}`);
  } catch {
    // Plain HTTP from another host has no clipboard: the reader copies by hand.
    window.prompt(`Copy ${what}:`, text);
  }
}

export function copyName(tree: FlameTree, node: number): void {
  void copy(tree.nameOf(node), "the name");
}

/** One line a frame, root first, as in folded stacks. */
export function copyStack(tree: FlameTree, node: number): void {
  const names = tree
    .pathTo(node)
    .slice(1)
    .map((step) => tree.nameOf(step));
  void copy(names.join("\n"), "the stack");
}

/** With the times of the picture, not those of the moment: a live range has moved on since the answer. */
export function copyLink(): void {
  const link = new URL(printLink(fixedView()), location.href).href;
  void copy(link, "a link with fixed times");
}

/** The same selection for a terminal, a script or a ticket. */
export function copyCommand(): void {
  void copy(commandOfView(), "the command for a terminal");
}

export function commandOfView(): string {
  const file = lookedAtFile.peek();
  if (file) return commandOfFile(file.name);
  const server = serverOfPage(document.baseURI);
  const state = fixedView();
  const base = state.screen === "compare" ? shownBase.peek() : undefined;
  if (base) {
    const query = state.baseQuery === "" ? state.query : state.baseQuery;
    return diffCommand(server, { ...state, base: { query, ...base }, shown: range.peek() });
  }
  if (state.screen === "services") return seriesCommand(server, state, "service_name");
  if (state.screen === "labels") return seriesCommand(server, state, state.groupBy || "service_name");
  if (state.screen === "status") return `candela doctor --agent --server ${shellQuote(server)}`;
  if (state.panes === "sandwich" && state.pinned !== "")
    return queryCommand(server, state, "callers", exactPattern("fn", state.pinned));
  if (state.panes === "source" && state.pinned !== "")
    return queryCommand(server, state, state.code === "disassembly" ? "disassembly" : "source", state.pinned);
  return queryCommand(server, state, state.panes === "tree" ? "tree" : "top");
}

/** The source pane, on pages that have one: while it is shown, steps through matches are steps through its lines. */
export const sourceSteps: { isAvailable: boolean; step: ((direction: 1 | -1) => void) | undefined } = {
  isAvailable: false,
  step: undefined,
};

/** The source of a function: of one call path where a node is given, else of all that is on the screen. */
export function openSource(name: string, node?: number): void {
  if (!sourceSteps.isAvailable) return;
  const tree = flameTree.peek();
  const zoom = tree && node !== undefined ? { zoom: zoomOf(tree, node) } : {};
  update({ ...zoom, screen: "profile", panes: "source", pinned: name, codeFile: "", codeBinary: "", search: "" });
}

export function openSourceOf(node: number): void {
  const tree = flameTree.peek();
  if (tree && node > ROOT && node < tree.length) openSource(tree.nameOf(node), node);
}

/** Files are where they were opened: the command runs there. */
function commandOfFile(name: string): string {
  const state = view.peek();
  if (state.screen === "compare") return fileDiffCommand(parseFileReference(state.baseFile)?.name ?? name, name, state);
  if (state.panes === "sandwich" && state.pinned !== "") return fileCommand(name, state, "callers", exactPattern("fn", state.pinned));
  // Machine code is that of stored profiles.
  if (state.panes === "source" && state.pinned !== "") return fileCommand(name, state, "source", state.pinned);
  return fileCommand(name, state, state.panes === "tree" ? "tree" : "top");
}

export function pinFunction(name: string): void {
  update({ pinned: view.peek().pinned === name ? "" : name, codeFile: "", codeBinary: "" });
}

/** Whatever is on the screen: the way back up stands above all panes. */
export function zoomTo(node: number): void {
  if (flameView.current) flameView.current.zoomTo(node);
  else rememberZoom(node);
}

export function zoomOut(): void {
  if (flameView.current) return flameView.current.zoomOut();
  const node = zoomedNode.peek();
  if (node !== ROOT) rememberZoom(flameTree.peek()?.parentOf(node) ?? ROOT);
}

/** What shows a zoom: who asks for a place elsewhere gets the picture with it. */
const WITH_ZOOM: ReadonlySet<PaneChoice> = new Set(["flame", "both", "tree", "source"]);

function showPlace(node: number): void {
  zoomTo(node);
  if (!flameView.current && !WITH_ZOOM.has(view.peek().panes)) update({ panes: "both" });
}

/** Zooms to the heaviest place of what is highlighted. One that was folded is asked for, and then focused on: the next look folds it again. */
export function zoomToHighlight(): void {
  const tree = flameTree.peek();
  if (!tree) return;
  const heaviest = heaviestHighlighted(tree);
  if (heaviest !== NONE) {
    showPlace(heaviest);
    if (flameView.current) flameView.current.select(heaviest);
    else selectedNode.value = heaviest;
    return;
  }
  if (tree.header.pruned === 0) return announce("No stack of the picture has it");
  withAllNodes("It is among the small nodes that are folded: asking for all …", (whole) => {
    const found = heaviestHighlighted(whole);
    if (found === NONE) return announce("Nothing that was folded has it either");
    if (!focusOn(found)) rememberZoom(found);
  });
}

function heaviestHighlighted(tree: FlameTree): number {
  const nodes = highlight.peek()?.nodes ?? [];
  return nodes.reduce((best, node) => (best === NONE || tree.total[node] > tree.total[best] ? node : best), NONE);
}

/** Steps through the highlighted places, in the order of the picture. */
export function stepHighlight(direction: 1 | -1): void {
  if (sourceSteps.step) return sourceSteps.step(direction);
  const engine = flameView.current;
  const nodes = highlight.peek()?.nodes ?? [];
  if (nodes.length === 0) return;
  const isTree = view.peek().panes === "tree";
  if (!engine && !isTree) return showPlace(nodes[direction === 1 ? 0 : nodes.length - 1]);
  const selected = selectedNode.peek();
  const at = nodes.findIndex((node) => node >= selected);
  const isOnMatch = at !== -1 && nodes[at] === selected;
  const next = direction === 1 ? (at === -1 ? 0 : at + (isOnMatch ? 1 : 0)) : (at === -1 ? nodes.length : at) - 1;
  const node = nodes[(next + nodes.length) % nodes.length];
  if (engine) engine.reveal(node);
  else selectedNode.value = node;
}

/** Above the subtree that was asked for there is only the way to it: whoever goes there wants the rest, too. */
export function rememberZoom(node: number): void {
  const tree = flameTree.peek();
  if (!tree) return;
  const { path } = view.peek();
  const isAbove = path !== "" && tree.depth[node] < path.split("\n").length;
  update({ zoom: zoomOf(tree, node), ...(isAbove && { path: "" }) });
}

/** An address beyond this is cut by proxies and chat programs. */
const LONGEST_PATH = 6000;

/**
 * Asks the server for a subtree alone, at full depth, and shows it; false where it cannot. What is folded has no name to ask for: its
 * parent has all of it.
 */
export function focusOn(node: number): boolean {
  const tree = flameTree.peek();
  if (!hasServer || !tree || node <= ROOT || node >= tree.length) return false;
  if (tree.frames.isOther(tree.frame[node])) return unfold(tree, node);
  const path = pathOf(tree, node).join("\n");
  if (path.length > LONGEST_PATH) {
    announce("The way there is too long for an address: focus on a frame above it first");
    return false;
  }
  performance.mark("focus:asked");
  const { panes } = view.peek();
  update({ path, zoom: zoomOf(tree, node), ...(!flameView.current && !WITH_ZOOM.has(panes) && { panes: "both" as const }) });
  return true;
}

/** Shows what was folded into an `other`, as much as the server tells of its parent. */
export function unfold(tree: FlameTree, other: number): boolean {
  const parent = tree.parentOf(other);
  const { path } = view.peek();
  const focusedDepth = path === "" ? ROOT : path.split("\n").length;
  if (hasServer && tree.depth[parent] > focusedDepth) {
    announce(`“other” is no function: focused on ${tree.nameOf(parent)}, of which it is a part`);
    return focusOn(parent);
  }
  // What has been asked for by itself is not asked for once more: all of it is.
  withAllNodes("Asking for all that is folded …", () => undefined);
  return hasServer;
}

/** The way from the root to a node, as the API takes it. */
export function pathOf(tree: FlameTree, node: number): string[] {
  return tree
    .pathTo(node)
    .slice(1)
    .map((step) => pathStep(tree, step));
}

/** The name, then what else tells it apart. */
function pathStep(tree: FlameTree, node: number): string {
  const { name, file, mapping } = tree.frames.get(tree.frame[node]);
  return mapping === "" ? (file === "" ? name : `${name}\t${file}`) : `${name}\t${file}\t${mapping}`;
}

/** Adds a filter about the function of a node. */
export function filterBy(kind: FilterKind, node: number): void {
  const tree = flameTree.peek();
  if (!tree || node <= ROOT || node >= tree.length) return;
  const pattern = exactPattern("fn", tree.nameOf(node));
  update({ filters: withFilter(view.peek().filters, kind, pattern), zoom: "", path: "" });
}

/** Folds frames of all stacks. */
export function collapse(pattern: string): void {
  update({ filters: withFilter(view.peek().filters, "collapse", pattern), zoom: "", path: "" });
}

function zoomOf(tree: FlameTree, node: number): string {
  return node === ROOT ? "" : pathHash(tree, node);
}
