// Saved views: opening, saving, deleting.

import { useEffect, useState } from "preact/hooks";
import "../styles/notes-sheet.css";
import { isRelative } from "../model/time-range.ts";
import { CloseIcon } from "./icons.tsx";
import { addressOf, loadSavedViews, openView, removeView, savedViews, saveView, viewsError, type SavedView } from "./saved-views.ts";
import { isOwn, mayWrite } from "./session.ts";
import { view } from "./store.ts";

export function SavedViewsPanel() {
  useEffect(loadSavedViews, []);
  return (
    <div class="views-panel" data-testid="views-panel">
      {viewsError.value && (
        <p class="menu-note" role="alert">
          {viewsError.value.message}
        </p>
      )}
      {!viewsError.value && savedViews.value.length === 0 && <p class="menu-note muted">No view has been saved yet.</p>}
      {savedViews.value.map((saved) => (
        <SavedEntry key={saved.id} saved={saved} href={addressOf(saved)} onOpen={() => openView(saved)} />
      ))}
      {mayWrite.value ? <SaveForm /> : <p class="menu-note muted">Who saves views needs the right to write.</p>}
    </div>
  );
}

interface SavedEntryProps {
  saved: SavedView;
  /** A link where it is a view of its own. */
  href?: string;
  onOpen: () => void;
}

export function SavedEntry({ saved, href, onOpen }: SavedEntryProps) {
  const [isAsked, setAsked] = useState(false);
  const { name, author } = saved;
  if (isAsked) {
    return (
      <div class="saved-view">
        <span class="menu-item truncated">{name}</span>
        <button type="button" class="link-button is-danger" data-testid="view-remove-confirm" autofocus onClick={() => void removeView(saved)}>
          Delete
        </button>
        <button type="button" class="link-button" onClick={() => setAsked(false)}>
          Keep
        </button>
      </div>
    );
  }
  const body = (
    <>
      <span class="truncated">{name}</span>
      <span class="muted">{author}</span>
    </>
  );
  return (
    <div class="saved-view" data-testid="saved-view">
      {href === undefined ? (
        <button type="button" class="menu-item" onClick={onOpen}>
          {body}
        </button>
      ) : (
        <a
          class="menu-item"
          href={href}
          onClick={(event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
            event.preventDefault();
            onOpen();
          }}
        >
          {body}
        </a>
      )}
      {isOwn(author) && mayWrite.value && (
        <button type="button" class="clear-button" aria-label={`Delete ${name}`} onClick={() => setAsked(true)}>
          <CloseIcon />
        </button>
      )}
    </div>
  );
}

function SaveForm() {
  const { from, to } = view.value;
  const canMove = isRelative(from) || isRelative(to);
  const [name, setName] = useState("");
  const [isFixed, setFixed] = useState(false);
  const [refused, setRefused] = useState<string>();
  return (
    <form
      class="sheet-form"
      onSubmit={async (event) => {
        event.preventDefault();
        const refusal = await saveView(name.trim(), isFixed);
        setRefused(refusal);
        if (refusal === undefined) setName("");
      }}
    >
      <label>
        Save this view as
        <input value={name} maxLength={100} required data-testid="view-name" onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      {canMove && (
        <label class="is-check">
          <input type="checkbox" checked={isFixed} data-testid="view-fixed" onChange={(event) => setFixed(event.currentTarget.checked)} />
          With these fixed times, not “{from} to {to}”
        </label>
      )}
      {refused !== undefined && (
        <p class="sheet-refusal" role="alert">
          {refused}
        </p>
      )}
      <button type="submit" class="secondary-button" data-testid="view-save">
        Save
      </button>
    </form>
  );
}
