// The menu of a frame: of a box in the flame graph, or of a row of the call tree.

import { signal, useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { libraryCollapse, packageCollapse, recursionCollapse } from "../model/filters.ts";
import { NONE, type FlameTree } from "../model/flame-tree.ts";
import { escapeForSearch } from "../model/search.ts";
import { collapse, filterBy, flameView, focusOn, openSourceOf, sourceSteps, unfold, zoomTo } from "./actions.ts";
import { aboutNode } from "./flame-keys.ts";
import { hoveredNode } from "./highlight.ts";
import { flameTree, hasServer, update } from "./store.ts";

interface OpenMenu {
  /** The node is one of this tree: with the next one the menu closes, or its entries would act on another function. */
  tree: FlameTree;
  node: number;
  x: number;
  y: number;
  /** Where the focus goes back to. */
  from: HTMLElement;
}

interface Entry {
  label: string;
  key: string;
  act: () => void;
}

const menu = signal<OpenMenu | undefined>(undefined);
/** Between the menu and the edge of the window. */
const MARGIN = 8;

/** Of the flame graph: of what is below the pointer. */
export function openFrameMenu(event: MouseEvent): void {
  const node = flameView.current?.nodeAt(event.clientX, event.clientY) ?? NONE;
  if (node === NONE || !(event.currentTarget instanceof HTMLElement)) return;
  flameView.current?.select(node);
  openMenuOf(node, event, event.currentTarget);
}

/** Where the pointer is; `from` gets the focus back. */
export function openMenuOf(node: number, event: MouseEvent, from: HTMLElement): void {
  const tree = flameTree.peek();
  if (!tree || node < 0 || node >= tree.length) return;
  event.preventDefault();
  hoveredNode.value = NONE;
  menu.value = { tree, node, x: event.clientX, y: event.clientY, from };
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
    if (panel.current) keepInWindow(panel.current, open);
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
    document.addEventListener("keydown", (event) => handleKey(event, panel.current, entries, open.from, close), options);
    return () => abort.abort();
  }, [open]);

  if (!open || open.tree !== flameTree.value) return null;
  return (
    // Whatever is on a page belongs to a landmark, for who goes through it by these.
    <aside aria-label="What can be done with the box">
      <div
        class="popover-panel frame-menu"
        ref={panel}
        role="menu"
        aria-label={open.tree.nameOf(open.node)}
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
    </aside>
  );
}

function keepInWindow(panel: HTMLElement, { x, y }: OpenMenu): void {
  panel.style.left = `${Math.max(MARGIN, Math.min(x, innerWidth - panel.offsetWidth - MARGIN))}px`;
  panel.style.top = `${Math.max(MARGIN, Math.min(y, innerHeight - panel.offsetHeight - MARGIN))}px`;
}

function entriesOf({ tree, node }: OpenMenu): Entry[] {
  if (tree.frames.isOther(tree.frame[node])) return entriesOfFolded(tree, node);
  return [
    { label: "Zoom to it", key: "Enter", act: () => zoomTo(node) },
    ...(hasServer ? askedEntries(tree, node) : []),
    { label: "Highlight everywhere", key: "m", act: () => aboutNode("m", node) },
    { label: "Search for it", key: "/", act: () => update({ search: escapeForSearch(tree.nameOf(node)), pinned: "" }) },
    { label: "Copy name", key: "c", act: () => aboutNode("c", node) },
    { label: "Copy stack", key: "s", act: () => aboutNode("s", node) },
  ];
}

/** It is no function, and has no name to ask for. */
function entriesOfFolded(tree: FlameTree, node: number): Entry[] {
  return [
    { label: "Zoom to it", key: "Enter", act: () => zoomTo(node) },
    ...(hasServer ? [{ label: `Open it: ask for all below ${tree.frames.shortName(tree.frame[tree.parentOf(node)])}`, key: "f", act: () => unfold(tree, node) }] : []),
  ];
}

/** What another answer is asked for. */
function askedEntries(tree: FlameTree, node: number): Entry[] {
  const frame = tree.frames.get(tree.frame[node]);
  const [ofPackage, ofLibrary] = [packageCollapse(frame), libraryCollapse(frame.mapping)];
  return [
    { label: "Focus: ask for all below it", key: "f", act: () => focusOn(node) },
    ...(sourceSteps.isAvailable ? [{ label: "Source, for this call path", key: "o", act: () => openSourceOf(node) }] : []),
    { label: "Only stacks with it", key: "k", act: () => filterBy("focus", node) },
    { label: "No stacks with it", key: "x", act: () => filterBy("ignore", node) },
    { label: "Hide it", key: "h", act: () => filterBy("hide", node) },
    { label: "Begin stacks here", key: "b", act: () => filterBy("show_from", node) },
    { label: "Collapse its recursion", key: "r", act: () => collapse(recursionCollapse(frame.name)) },
    ...(ofPackage ? [{ label: `Collapse ${ofPackage.what}`, key: "p", act: () => collapse(ofPackage.pattern) }] : []),
    ...(ofLibrary ? [{ label: `Collapse ${ofLibrary.what}`, key: "l", act: () => collapse(ofLibrary.pattern) }] : []),
    { label: "Callers and callees", key: "w", act: () => update({ screen: "profile", pinned: frame.name, panes: "sandwich" }) },
  ];
}

/** The keys beside the entries work while the menu is open; Enter is that of the focused entry. */
function handleKey(
  event: KeyboardEvent,
  panel: HTMLElement | null,
  entries: readonly Entry[],
  from: HTMLElement,
  close: () => void,
): void {
  const chosen = event.key === "Enter" ? undefined : entries.find(({ key }) => key === event.key);
  if (event.key === "Escape" || chosen) {
    event.preventDefault();
    event.stopPropagation();
    close();
    chosen?.act();
    from.focus({ preventScroll: true });
    return;
  }
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  event.preventDefault();
  event.stopPropagation();
  const items = [...(panel?.querySelectorAll("button") ?? [])];
  const at = items.indexOf(document.activeElement as HTMLButtonElement);
  items[(at + (event.key === "ArrowDown" ? 1 : items.length - 1)) % items.length]?.focus();
}
