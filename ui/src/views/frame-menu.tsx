// The menu of a box in the flame graph.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { NONE } from "../model/flame-tree.ts";
import { escapeForSearch } from "../model/search.ts";
import { copyName, copyStack, flameView, pinFunction } from "./actions.ts";
import { hoveredNode } from "./highlight.ts";
import { flame, update } from "./store.ts";

const menu = signal<{ node: number; x: number; y: number } | undefined>(undefined);
const WIDTH = 210;
const HEIGHT = 170;

export function openFrameMenu(event: MouseEvent): void {
  const node = flameView.current?.nodeAt(event.clientX, event.clientY) ?? NONE;
  if (node === NONE) return;
  event.preventDefault();
  hoveredNode.value = NONE;
  flameView.current?.select(node);
  menu.value = {
    node,
    x: Math.min(event.clientX, innerWidth - WIDTH),
    y: Math.min(event.clientY, innerHeight - HEIGHT),
  };
}

export function FrameMenu() {
  const panel = useRef<HTMLDivElement>(null);
  const open = menu.value;
  useEffect(() => {
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
    document.addEventListener("keydown", (event) => handleKey(event, panel.current, close), options);
    return () => abort.abort();
  }, [open]);

  const tree = flame.value.data;
  if (!open || !tree || open.node >= tree.length) return null;
  const name = tree.nameOf(open.node);
  const entries: [string, string, () => void][] = [
    ["Zoom to it", "Enter", () => flameView.current?.zoomTo(open.node)],
    ["Highlight everywhere", "m", () => pinFunction(name)],
    ["Search for it", "/", () => update({ search: escapeForSearch(name), pinned: "" })],
    ["Copy name", "c", () => copyName(open.node)],
    ["Copy stack", "s", () => copyStack(open.node)],
  ];
  return (
    <div
      class="popover-panel frame-menu"
      ref={panel}
      role="menu"
      aria-label={name}
      style={{ left: `${open.x}px`, top: `${open.y}px` }}
    >
      {entries.map(([label, key, action]) => (
        <button
          type="button"
          class="menu-item"
          role="menuitem"
          key={label}
          onClick={() => {
            menu.value = undefined;
            action();
          }}
        >
          <span>{label}</span>
          <kbd>{key}</kbd>
        </button>
      ))}
    </div>
  );
}

function handleKey(event: KeyboardEvent, panel: HTMLElement | null, close: () => void): void {
  if (event.key === "Escape") {
    event.stopPropagation();
    close();
    return;
  }
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  event.preventDefault();
  event.stopPropagation();
  const items = [...(panel?.querySelectorAll("button") ?? [])];
  const at = items.indexOf(document.activeElement as HTMLButtonElement);
  items[(at + (event.key === "ArrowDown" ? 1 : items.length - 1)) % items.length]?.focus();
}
