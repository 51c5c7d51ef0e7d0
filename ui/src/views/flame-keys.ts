// The keyboard on the flame graph. Global keys (`/`, `?`) are in `app.tsx`.

import type { Move } from "../engine/navigation.ts";
import { NONE, ROOT } from "../model/flame-tree.ts";
import { copyName, copyStack, flameView, focusOn, openSourceOf, pinFunction, stepHighlight, zoomOut } from "./actions.ts";
import { describedNode } from "./highlight.ts";
import { flameTree, update, view } from "./store.ts";

export function handleFlameKey(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const engine = flameView.current;
  if (!engine) return;
  const handled = moveFor(event.key)
    ? (engine.moveSelection(moveFor(event.key) ?? "deeper"), true)
    : command(event.key);
  if (handled) event.preventDefault();
}

/** Up and down follow the picture: the root is on top in an icicle and at the bottom in a flame. */
function moveFor(key: string): Move | undefined {
  const icicle = view.peek().orientation === "icicle";
  switch (key) {
    case "ArrowDown":
      return icicle ? "deeper" : "shallower";
    case "ArrowUp":
      return icicle ? "shallower" : "deeper";
    case "ArrowLeft":
      return "left";
    case "ArrowRight":
      return "right";
    default:
      return undefined;
  }
}

/** One step back: the latest addition goes first, the pinned function, then the zoom. */
export function letGo(): void {
  if (view.peek().pinned === "") zoomOut();
  else update({ pinned: "" });
}

/** The keys of one frame, shared with its menu. */
export function aboutNode(key: "c" | "s" | "m", node: number): void {
  const tree = flameTree.peek();
  if (!tree || node < 0 || node >= tree.length) return;
  if (key === "c") copyName(tree, node);
  else if (key === "s") copyStack(tree, node);
  else pinFunction(tree.nameOf(node));
}

function command(key: string): boolean {
  const engine = flameView.current;
  if (!engine) return false;
  switch (key) {
    case "Enter":
      if (engine.selectedNode !== NONE) engine.zoomTo(engine.selectedNode);
      return true;
    case "Escape":
      letGo();
      return true;
    case "Backspace":
      engine.zoomOut();
      return true;
    case "Home":
      engine.zoomTo(ROOT);
      return true;
    case "n":
      stepHighlight(1);
      return true;
    case "N":
      stepHighlight(-1);
      return true;
    case "c":
    case "s":
    case "m":
      aboutNode(key, describedNode.peek());
      return true;
    case "o":
      openSourceOf(describedNode.peek());
      return true;
    case "f":
      focusOn(describedNode.peek());
      return true;
    case "i":
      update({ orientation: view.peek().orientation === "icicle" ? "flame" : "icicle" });
      return true;
    default:
      return false;
  }
}
