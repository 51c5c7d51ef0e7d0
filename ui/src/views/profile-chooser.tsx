// Which profile do I need? By what is wrong, and not by what it is called.

import { signal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { serverOfPage } from "../model/command.ts";
import { answeredQuestions } from "../model/profile-questions.ts";
import { typeTitle } from "../model/profile-type.ts";
import { copy } from "./actions.ts";
import { types, update } from "./store.ts";

export const isChooserOpen = signal(false);

function commandHere(command: string): string {
  return command.replace("URL", serverOfPage(document.baseURI));
}

export function ProfileChooser() {
  const dialog = useRef<HTMLDialogElement>(null);
  useSignalEffect(() => {
    const element = dialog.current;
    if (!element) return;
    if (isChooserOpen.value && !element.open) element.showModal();
    else if (!isChooserOpen.value && element.open) element.close();
  });
  return (
    <dialog
      class="help"
      ref={dialog}
      aria-labelledby="chooser-title"
      closedby="any"
      data-testid="profile-chooser"
      onClose={() => (isChooserOpen.value = false)}
    >
      {isChooserOpen.value && (
        <div class="chooser-sheet">
          <h2 id="chooser-title">Which profile do I need?</h2>
          <p class="muted">By what you see. Where there is no such profile yet, a click copies the command that makes one.</p>
          <ul>
            {answeredQuestions(types.value.data ?? []).map(({ question: { symptom, answer, type, command }, found }) => (
              <li key={type}>
                <span>
                  <strong>{symptom}</strong>
                  <span class="muted">{answer}</span>
                </span>
                {found ? (
                  <button
                    type="button"
                    class="secondary-button"
                    onClick={() => {
                      isChooserOpen.value = false;
                      update({ type: found.id, zoom: "", path: "", pinned: "" });
                    }}
                  >
                    {typeTitle(found)}
                  </button>
                ) : (
                  <button
                    type="button"
                    class="link-button mono"
                    title="There is none in this selection: copy the command that makes one"
                    onClick={() => void copy(commandHere(command), "the command")}
                  >
                    {commandHere(command)}
                  </button>
                )}
              </li>
            ))}
          </ul>
        </div>
      )}
    </dialog>
  );
}
