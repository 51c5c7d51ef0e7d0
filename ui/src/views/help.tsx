// The keys, on one sheet.

import { signal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";

export const isHelpOpen = signal(false);

const GROUPS: readonly { title: string; keys: readonly (readonly [string, string])[] }[] = [
  {
    title: "Flame graph",
    keys: [
      ["Click, Enter", "zoom to the frame"],
      ["Backspace", "one level up"],
      ["Home", "show everything"],
      ["← → ↑ ↓", "move the selection"],
      ["f", "focus: ask for everything below it"],
      ["m", "highlight this function everywhere"],
      ["o", "its source, for this call path"],
      ["c, s", "copy the name, the stack"],
      ["i", "turn it over"],
      ["Ctrl + wheel", "zoom at the pointer"],
      ["Shift + wheel, drag", "pan while zoomed"],
    ],
  },
  {
    title: "Everywhere",
    keys: [
      ["Ctrl + K", "anything by its name"],
      ["/", "search by regular expression"],
      ["n, N", "next, previous match"],
      ["Esc", "let go of a function, or one level up"],
      ["1 … 7", "both, flame, table, tree, sandwich, chart, source"],
      ["c", "compare with the time before"],
      ["v", "compare with the previous version"],
      ["a", "add a note, at the pointer or now"],
      ["w", "which profile do I need?"],
      ["u", "times in UTC, or yours"],
      ["y", "copy a link with fixed times"],
      ["Y", "copy the command for a terminal"],
      ["e", "export what is seen"],
      ["t", "light or dark"],
      ["r", "refresh now"],
      ["l", "follow live, or stop"],
      ["?", "this sheet"],
    ],
  },
  {
    title: "Table and tree",
    keys: [
      ["↑ ↓", "from row to row"],
      ["← →, *", "tree: close, open, open all below"],
      ["Enter", "highlight the function; in the tree, zoom"],
      ["Double click", "go there, also to what is folded"],
      ["o", "its source"],
      ["c, s", "copy the name; in the tree, the stack"],
      ["f", "tree: focus; on “other”, on what it is part of"],
    ],
  },
  {
    title: "Chart and heatmap",
    keys: [
      ["← → ↑ ↓", "move the selection"],
      ["Click, Enter", "choose its time for the whole page"],
      ["+, −, Home", "in time: zoom in, out, everything"],
      ["Shift + ← →", "pan"],
      ["Backspace", "the range before"],
      ["Shift + drag, Enter", "heatmap: mark a range to compare"],
    ],
  },
  {
    title: "Source",
    keys: [
      ["n, N", "next, previous hot line, or match"],
      ["h", "the hottest line"],
      ["c", "copy file and line"],
    ],
  },
  {
    title: "Search",
    keys: [
      ["json|serde", "functions that match"],
      ["^main\\.", "lower case ignores case"],
      ["file:net/http", "by source file"],
      ["line:main.c:12", "by file and first line of the function"],
      ["bin:libc", "by binary"],
      ["pkg:^net/", "by package"],
      ["kind:kernel", "by kind of code"],
    ],
  },
];

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useSignalEffect(() => {
    const element = dialog.current;
    if (!element) return;
    if (isHelpOpen.value && !element.open) element.showModal();
    else if (!isHelpOpen.value && element.open) element.close();
  });
  return (
    <dialog
      class="help"
      ref={dialog}
      aria-label="Keyboard shortcuts"
      closedby="any"
      onClose={() => (isHelpOpen.value = false)}
    >
      <div class="help-sheet">
        {GROUPS.map(({ title, keys }) => (
          <section key={title}>
            <h2>{title}</h2>
            <dl>
              {keys.map(([key, meaning]) => (
                <div key={key}>
                  <dt>
                    <kbd>{key}</kbd>
                  </dt>
                  <dd>{meaning}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </dialog>
  );
}
