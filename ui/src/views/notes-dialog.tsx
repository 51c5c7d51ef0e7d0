// The sheet of deploys and notes: what there is in the range or at a flag, what can be done with it, and a new one.

import { useEffect, useRef, useState } from "preact/hooks";
import "../styles/notes-sheet.css";
import type { Annotation, Marker } from "../model/markers.ts";
import { isRelative, timeParameter } from "../model/time-range.ts";
import { clock } from "./clock.ts";
import { CloseIcon } from "./icons.tsx";
import { markerTime } from "./markers.tsx";
import {
  compareAround,
  comparePreviousVersion,
  keepNote,
  labelsText,
  markers,
  noteLabels,
  notesError,
  openNotes,
  removeNote,
} from "./notes.ts";
import { isOwn, mayWrite } from "./session.ts";
import { range, view } from "./store.ts";

export function NotesDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      class="help"
      ref={dialog}
      aria-labelledby="notes-title"
      closedby="any"
      data-testid="notes"
      onClose={() => (openNotes.value = undefined)}
    >
      <Sheet close={() => dialog.current?.close()} />
    </dialog>
  );
}

interface SheetProps {
  /** The dialog closes first, and gives back the focus; then it goes. */
  close: () => void;
}

function Sheet({ close }: SheetProps) {
  const { keys, isAdding = false } = openNotes.value ?? {};
  const shown = markers.value.filter(({ key }) => keys === undefined || keys.includes(key));
  const error = notesError.value;
  return (
    <div class="sheet">
      <div class="sheet-head">
        <h2 id="notes-title">{keys ? markerTitle(shown) : "Deploys and notes in this range"}</h2>
        <button type="button" class="icon-button" aria-label="Close" onClick={close}>
          <CloseIcon />
        </button>
      </div>
      {error && <p role="alert">{error.message}</p>}
      {!error && shown.length === 0 && <p class="muted">Nothing was noted in this range, and no version changed.</p>}
      <ul class="note-list" data-testid="note-list">
        {shown.map((marker) => (
          <Entry key={marker.key} marker={marker} close={close} />
        ))}
      </ul>
      {!keys && <NewNoteForm hasFocus={isAdding} />}
    </div>
  );
}

function markerTitle(shown: readonly Marker[]): string {
  return shown.length === 1 ? markerTime(shown[0]) : `${shown.length} at about the same time`;
}

function Entry({ marker, close }: SheetProps & { marker: Marker }) {
  const { time, kind, text, annotation, change } = marker;
  return (
    <li class="note-entry" data-testid="note">
      <span class="note-kind">{kind}</span>
      <span class="note-text">{text}</span>
      <span class="note-about muted">
        {markerTime(marker)}
        {annotation ? `, by ${annotation.author}` : `, seen in the data: the label ${change?.label ?? "version"} changes`}
        {annotation && Object.keys(annotation.labels).length > 0 && ` · ${labelsText(annotation.labels)}`}
      </span>
      <span class="note-actions">
        <button
          type="button"
          class="link-button"
          data-testid="compare-around"
          onClick={() => {
            close();
            compareAround(time);
          }}
        >
          Compare before and after
        </button>
        {change && (
          <button
            type="button"
            class="link-button"
            data-testid="compare-versions"
            onClick={() => {
              close();
              void comparePreviousVersion(change);
            }}
          >
            Compare {change.version} with {change.previous}
          </button>
        )}
        {annotation && isOwn(annotation.author) && mayWrite.value && <Removal annotation={annotation} />}
      </span>
    </li>
  );
}

function Removal({ annotation }: { annotation: Annotation }) {
  const [isAsked, setAsked] = useState(false);
  if (!isAsked) {
    return (
      <button type="button" class="link-button" data-testid="note-remove" onClick={() => setAsked(true)}>
        Delete…
      </button>
    );
  }
  return (
    <>
      <button type="button" class="link-button is-danger" data-testid="note-remove-confirm" autofocus onClick={() => void removeNote(annotation)}>
        Delete it for everybody
      </button>
      <button type="button" class="link-button" onClick={() => setAsked(false)}>
        Keep it
      </button>
    </>
  );
}

const KINDS = ["note", "deploy", "config"] as const;

function NewNoteForm({ hasFocus }: { hasFocus: boolean }) {
  const { isUtc, to } = view.value;
  const suggested = openNotes.peek()?.time;
  const [time, setTime] = useState(() => {
    if (suggested !== undefined) return clock(suggested, { date: true });
    return isRelative(to) ? "now" : clock(range.peek().to, { date: true });
  });
  const [end, setEnd] = useState("");
  const [labels] = useState(noteLabels);
  const hasLabels = Object.keys(labels).length > 0;
  const [refused, setRefused] = useState<string>();
  if (!mayWrite.value) return <p class="muted">Who adds notes needs the right to write.</p>;
  return (
    <form
      class="sheet-form"
      data-testid="note-form"
      aria-label="A new note"
      onSubmit={async (event) => {
        event.preventDefault();
        const form = event.currentTarget;
        const typed = new FormData(form);
        const refusal = await keepNote({
          text: String(typed.get("text")),
          kind: String(typed.get("kind")),
          time: timeParameter(time, isUtc),
          ...(end.trim() !== "" && { end: timeParameter(end, isUtc) }),
          labels: typed.has("about") ? labels : {},
        });
        setRefused(refusal);
        if (refusal === undefined) form.reset();
      }}
    >
      <h3>A new note</h3>
      <label>
        What happened
        <textarea name="text" rows={2} maxLength={1000} required autofocus={hasFocus} data-testid="note-text" />
      </label>
      <label class="is-half">
        Kind
        <select name="kind" data-testid="note-kind">
          {KINDS.map((kind) => (
            <option key={kind}>{kind}</option>
          ))}
        </select>
      </label>
      <span class="is-half" />
      <label class="is-half">
        When
        <input value={time} required spellcheck={false} data-testid="note-time" onInput={(event) => setTime(event.currentTarget.value)} />
      </label>
      <label class="is-half">
        Until (may be empty)
        <input value={end} spellcheck={false} data-testid="note-end" onInput={(event) => setEnd(event.currentTarget.value)} />
      </label>
      {hasLabels && (
        <label class="is-check">
          <input type="checkbox" name="about" defaultChecked />
          <span>
            Only about <code>{labelsText(labels)}</code>
          </span>
        </label>
      )}
      {refused !== undefined && (
        <p class="sheet-refusal" role="alert">
          {refused}
        </p>
      )}
      <div class="sheet-buttons">
        <button type="submit" class="primary-button" data-testid="note-keep">
          Keep the note
        </button>
        <button
          type="button"
          class="secondary-button"
          onClick={() => {
            setTime(clock(range.peek().from, { date: true }));
            setEnd(clock(range.peek().to, { date: true }));
          }}
        >
          The whole range
        </button>
      </div>
    </form>
  );
}
