// A command that helps, with what it is for, and a button that copies it.

import { copy } from "./actions.ts";

export function Hint({ text, command }: { text: string; command: string }) {
  return (
    <p class="hint">
      <span>{text}</span>
      <code>{command}</code>
      <button type="button" class="link-button" aria-label={`Copy ${command}`} onClick={() => void copy(command, "the command")}>
        copy
      </button>
    </p>
  );
}
