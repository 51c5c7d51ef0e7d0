// Somebody else was quicker: who, when, and what can be done without losing either text.

import { clock } from "../clock.ts";
import type { DocumentChange } from "./document-change.ts";

export function DocumentConflict({ change }: { change: DocumentChange }) {
  const { conflict, base } = change.state.value;
  if (!conflict) return null;
  const { version, author, time } = conflict;
  const isTyped = change.rolledBackTo === undefined;
  return (
    <div class="document-conflict" role="alert" data-testid="document-conflict">
      <p>
        {time === null ? "The server has no document any more" : `${author} applied version ${version} at ${clock(time, { date: true })}`}; this is a change of version{" "}
        {base.version}. Nothing was overwritten.
      </p>
      <div class="sheet-buttons">
        {isTyped && (
          <button type="button" class="secondary-button" data-testid="document-theirs" onClick={() => change.rebase(true)}>
            Load theirs, keep mine aside
          </button>
        )}
        <button type="button" class="secondary-button" data-testid="document-mine" onClick={() => change.rebase(false)}>
          {isTyped ? "Compare mine with theirs" : "Compare with that"}
        </button>
      </div>
    </div>
  );
}
