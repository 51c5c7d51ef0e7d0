// Small things several panes do: copy to the clipboard with a word of confirmation, share a link, find the flame graph.

import { signal } from "@preact/signals";
import type { FlameView } from "../engine/flame-view.ts";
import { queryCommand } from "../model/command.ts";
import { ROOT } from "../model/flame-tree.ts";
import { pathHash } from "../model/path-hash.ts";
import { printLink, sharedState } from "../state/url.ts";
import { highlight } from "./highlight.ts";
import { flame, update, view } from "./store.ts";

/** The mounted engine, while there is one. */
export const flameView: { current: FlameView | undefined } = { current: undefined };

export const notice = signal("");
let noticeTimer: ReturnType<typeof setTimeout> | undefined;

export function announce(text: string): void {
  notice.value = text;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => (notice.value = ""), 2500);
}

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    announce(`Copied ${what}`);
  } catch {
    // Plain HTTP from another host has no clipboard: the reader copies by hand.
    window.prompt(`Copy ${what}:`, text);
  }
}

export function copyName(node: number): void {
  const tree = flame.peek().data;
  if (tree) void copy(tree.nameOf(node), "the name");
}

/** One line a frame, root first, as in folded stacks. */
export function copyStack(node: number): void {
  const tree = flame.peek().data;
  if (tree)
    void copy(
      tree
        .pathTo(node)
        .slice(1)
        .map((step) => tree.nameOf(step))
        .join("\n"),
      "the stack",
    );
}

export function copyLink(): void {
  const link = new URL(printLink(sharedState(view.peek(), Date.now())), location.href).href;
  void copy(link, "a link with fixed times");
}

/** The same selection for a terminal, a script or a ticket. */
export function copyCommand(): void {
  void copy(queryCommand(location.origin, sharedState(view.peek(), Date.now())), "the command for a terminal");
}

export function pinFunction(name: string): void {
  update({ pinned: view.peek().pinned === name ? "" : name });
}

/** Zooms to the heaviest place of what is highlighted. */
export function zoomToHighlight(): void {
  const tree = flame.peek().data;
  const nodes = highlight.peek()?.nodes ?? [];
  if (!tree || nodes.length === 0) return;
  const heaviest = nodes.reduce((best, node) => (tree.total[node] > tree.total[best] ? node : best));
  flameView.current?.zoomTo(heaviest);
  flameView.current?.select(heaviest);
}

/** Steps through the highlighted places, in the order of the picture. */
export function stepHighlight(direction: 1 | -1): void {
  const engine = flameView.current;
  const nodes = highlight.peek()?.nodes ?? [];
  if (!engine || nodes.length === 0) return;
  const at = nodes.findIndex((node) => node >= engine.selectedNode);
  const isOnMatch = at !== -1 && nodes[at] === engine.selectedNode;
  const next = direction === 1 ? (at === -1 ? 0 : at + (isOnMatch ? 1 : 0)) : (at === -1 ? nodes.length : at) - 1;
  engine.reveal(nodes[(next + nodes.length) % nodes.length]);
}

export function rememberZoom(node: number): void {
  const tree = flame.peek().data;
  if (tree) update({ zoom: node === ROOT ? "" : pathHash(tree, node) });
}
