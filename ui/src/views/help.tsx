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
      ["m", "highlight this function everywhere"],
      ["c, s", "copy the name, the stack"],
      ["i", "turn it over"],
      ["Ctrl + wheel", "zoom at the pointer"],
      ["Shift + wheel, drag", "pan while zoomed"],
    ],
  },
  {
    title: "Everywhere",
    keys: [
      ["/", "search by regular expression"],
      ["n, N", "next, previous match"],
      ["Esc", "let go of a function, or one level up"],
      ["y", "copy a link with fixed times"],
      ["Y", "copy the command for a terminal"],
      ["t", "light or dark"],
      ["r", "refresh now"],
      ["l", "follow live, or stop"],
      ["?", "this sheet"],
    ],
  },
  {
    title: "Search",
    keys: [
      ["json|serde", "functions that match"],
      ["^main\\.", "lower case ignores case"],
      ["file:net/http", "by source file"],
      ["bin:libc", "by binary"],
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
