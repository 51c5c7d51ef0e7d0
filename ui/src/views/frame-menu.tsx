// The menu of a box in the flame graph.

import { signal, useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { NONE, type FlameTree } from "../model/flame-tree.ts";
import { escapeForSearch } from "../model/search.ts";
import { flameView, zoomTo } from "./actions.ts";
import { aboutNode } from "./flame-keys.ts";
import { hoveredNode } from "./highlight.ts";
import { flameTree, update } from "./store.ts";

interface OpenMenu {
  /** The node is one of this tree: with the next one the menu closes, or its entries would act on another function. */
  tree: FlameTree;
  node: number;
  x: number;
  y: number;
}

interface Entry {
  label: string;
  key: string;
  act: () => void;
}

const menu = signal<OpenMenu | undefined>(undefined);
const WIDTH = 210;
const HEIGHT = 170;

export function openFrameMenu(event: MouseEvent): void {
  const tree = flameTree.peek();
  const node = flameView.current?.nodeAt(event.clientX, event.clientY) ?? NONE;
  if (!tree || node === NONE) return;
  event.preventDefault();
  hoveredNode.value = NONE;
  flameView.current?.select(node);
  menu.value = {
    tree,
    node,
    x: Math.min(event.clientX, innerWidth - WIDTH),
    y: Math.min(event.clientY, innerHeight - HEIGHT),
  };
}

export function FrameMenu() {
  const panel = useRef<HTMLDivElement>(null);
  const open = menu.value;
  useSignalEffect(() => {
    if (menu.value && menu.value.tree !== flameTree.value) menu.value = undefined;
  });
  // Before the paint: a menu that is to be seen and does not take its keys yet would let them through to the flame graph.
  useLayoutEffect(() => {
    if (!open) return undefined;
    panel.current?.querySelector("button")?.focus();
    const abort = new AbortController();
    const options = { signal: abort.signal, capture: true };
    const close = (): void => {
      menu.value = undefined;
    };
    document.addEventListener(
      "pointerdown",
      (event) => !panel.current?.contains(event.target as Node) && close(),
      options,
    );
    document.addEventListener("wheel", close, { ...options, passive: true });
    const entries = entriesOf(open);
    document.addEventListener("keydown", (event) => handleKey(event, panel.current, entries, close), options);
    return () => abort.abort();
  }, [open]);

  if (!open || open.tree !== flameTree.value) return null;
  return (
    <div
      class="popover-panel frame-menu"
      ref={panel}
      role="menu"
      aria-label={open.tree.nameOf(open.node)}
      style={{ left: `${open.x}px`, top: `${open.y}px` }}
    >
      {entriesOf(open).map(({ label, key, act }) => (
        <button
          type="button"
          class="menu-item"
          role="menuitem"
          key={label}
          onClick={() => {
            menu.value = undefined;
            act();
          }}
        >
          <span>{label}</span>
          <kbd>{key}</kbd>
        </button>
      ))}
    </div>
  );
}

function entriesOf({ tree, node }: OpenMenu): Entry[] {
  return [
    { label: "Zoom to it", key: "Enter", act: () => zoomTo(node) },
    { label: "Highlight everywhere", key: "m", act: () => aboutNode("m", node) },
    { label: "Search for it", key: "/", act: () => update({ search: escapeForSearch(tree.nameOf(node)), pinned: "" }) },
    { label: "Copy name", key: "c", act: () => aboutNode("c", node) },
    { label: "Copy stack", key: "s", act: () => aboutNode("s", node) },
  ];
}

/** The keys beside the entries work while the menu is open; Enter is that of the focused entry. */
function handleKey(
  event: KeyboardEvent,
  panel: HTMLElement | null,
  entries: readonly Entry[],
  close: () => void,
): void {
  const chosen = event.key === "Enter" ? undefined : entries.find(({ key }) => key === event.key);
  if (event.key === "Escape" || chosen) {
    event.preventDefault();
    event.stopPropagation();
    close();
    chosen?.act();
    document.querySelector<HTMLElement>("[data-testid=flamegraph]")?.focus({ preventScroll: true });
    return;
  }
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  event.preventDefault();
  event.stopPropagation();
  const items = [...(panel?.querySelectorAll("button") ?? [])];
  const at = items.indexOf(document.activeElement as HTMLButtonElement);
  items[(at + (event.key === "ArrowDown" ? 1 : items.length - 1)) % items.length]?.focus();
}
