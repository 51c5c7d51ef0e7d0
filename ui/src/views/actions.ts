// Small things several panes do: copy to the clipboard with a word of confirmation, share a link, find the flame graph.

import type { FlameView } from "../engine/flame-view.ts";
import { queryCommand } from "../model/command.ts";
import { ROOT, type FlameTree } from "../model/flame-tree.ts";
import { pathHash } from "../model/path-hash.ts";
import { printLink, sharedState } from "../state/url.ts";
import { highlight } from "./highlight.ts";
import { announce } from "./notice.ts";
import { flameTree, range, update, view } from "./store.ts";

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
  const link = new URL(printLink(sharedState(view.peek(), range.peek())), location.href).href;
  void copy(link, "a link with fixed times");
}

/** The same selection for a terminal, a script or a ticket. */
export function copyCommand(): void {
  void copy(queryCommand(location.origin, sharedState(view.peek(), range.peek())), "the command for a terminal");
}

export function pinFunction(name: string): void {
  update({ pinned: view.peek().pinned === name ? "" : name });
}

/** Zooms the picture; where only the table is shown, the picture comes with it. */
export function zoomTo(node: number): void {
  const tree = flameTree.peek();
  if (!tree) return;
  if (flameView.current) flameView.current.zoomTo(node);
  else update({ zoom: zoomOf(tree, node), panes: "both" });
}

/** Zooms to the heaviest place of what is highlighted. */
export function zoomToHighlight(): void {
  const tree = flameTree.peek();
  const nodes = highlight.peek()?.nodes ?? [];
  if (!tree || nodes.length === 0) return;
  const heaviest = nodes.reduce((best, node) => (tree.total[node] > tree.total[best] ? node : best));
  zoomTo(heaviest);
  flameView.current?.select(heaviest);
}

/** Steps through the highlighted places, in the order of the picture. */
export function stepHighlight(direction: 1 | -1): void {
  const engine = flameView.current;
  const nodes = highlight.peek()?.nodes ?? [];
  if (nodes.length === 0) return;
  if (!engine) return zoomTo(nodes[direction === 1 ? 0 : nodes.length - 1]);
  const at = nodes.findIndex((node) => node >= engine.selectedNode);
  const isOnMatch = at !== -1 && nodes[at] === engine.selectedNode;
  const next = direction === 1 ? (at === -1 ? 0 : at + (isOnMatch ? 1 : 0)) : (at === -1 ? nodes.length : at) - 1;
  engine.reveal(nodes[(next + nodes.length) % nodes.length]);
}

export function rememberZoom(node: number): void {
  const tree = flameTree.peek();
  if (tree) update({ zoom: zoomOf(tree, node) });
}

function zoomOf(tree: FlameTree, node: number): string {
  return node === ROOT ? "" : pathHash(tree, node);
}
