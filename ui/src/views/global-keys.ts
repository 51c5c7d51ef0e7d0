// Keys that work wherever the focus is.

import { stepHighlight } from "./actions.ts";
import { letGo } from "./flame-keys.ts";
import { toggleTheme } from "./theme.ts";

export const SEARCH_INPUT_ID = "search";

export type KeyActions = Record<string, () => void>;

/** Those of any page with a flame graph. */
export const globalKeys: KeyActions = {
  "/": () => {
    const input = document.getElementById(SEARCH_INPUT_ID) as HTMLInputElement | null;
    input?.focus();
    input?.select();
  },
  t: toggleTheme,
  n: () => stepHighlight(1),
  N: () => stepHighlight(-1),
  Escape: letGo,
};

export function handleGlobalKey(event: KeyboardEvent, actions: KeyActions): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(input|textarea|select)$/i.test(target.tagName))
  );
}
