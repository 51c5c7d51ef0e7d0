// The sheet in which the fleet's document is changed: its text, what is wrong with it, what would change, and the question whether it shall.

import { useEffect, useId, useRef } from "preact/hooks";
import { checkSummary, documentText, EXAMPLE, type Remark } from "../../model/fleet.ts";
import { placeOf } from "../../model/document-place.ts";
import { CloseIcon } from "../icons.tsx";
import { refusal } from "../notes.ts";
import { DocumentConflict } from "./document-conflict.tsx";
import { DocumentDiff } from "./document-diff.tsx";
import { closeChange, fleet, mayAdminister, openChange, whyNot } from "./fleet.ts";
import type { DocumentChange } from "./document-change.ts";
import { selectPlace } from "./select-place.ts";
import "../../styles/notes-sheet.css";

export function DocumentDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const change = openChange.value;
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    // Keys of the page below begin nothing while somebody types here.
    shown?.addEventListener("keydown", (event) => event.stopPropagation());
  }, []);
  if (!change) return null;
  return (
    <dialog
      class="help"
      ref={dialog}
      aria-labelledby="document-title"
      data-testid="fleet-document"
      onClose={closeChange}
      onCancel={(event) => {
        // From the question back to the text, and only then away.
        if (!change.state.peek().isConfirming) return;
        event.preventDefault();
        change.confirm(false);
      }}
    >
      <Sheet change={change} close={() => dialog.current?.close()} />
    </dialog>
  );
}

interface SheetProps {
  change: DocumentChange;
  /** The dialog closes first, and gives back the focus; then it goes. */
  close: () => void;
}

function Sheet({ change, close }: SheetProps) {
  const { rolledBackTo } = change;
  const { text, base, refused, isConfirming = false } = change.state.value;
  const area = useRef<HTMLTextAreaElement>(null);
  const title = useRef<HTMLHeadingElement>(null);
  const status = useId();
  const applied = fleet.value.data?.nodes.version;
  // Who was quicker is told while one types, and not only at the end.
  useEffect(() => {
    if (applied !== undefined && applied !== change.state.peek().base.version) void change.checkNow();
  }, [applied]);
  const wasConfirming = useRef(false);
  useEffect(() => {
    if (wasConfirming.current && !isConfirming) (area.current ?? title.current)?.focus();
    wasConfirming.current = isConfirming;
  }, [isConfirming]);
  return (
    <div class="sheet document-sheet">
      <div class="sheet-head">
        <h2 id="document-title" ref={title} tabIndex={-1}>{rolledBackTo === undefined ? "The fleet’s document" : `Back to version ${rolledBackTo}`}</h2>
        <button type="button" class="icon-button" aria-label="Close" onClick={close}>
          <CloseIcon />
        </button>
      </div>
      <DocumentConflict change={change} />
      {refused && <p class="is-worrying" role="alert">{refusal(refused)}</p>}
      <div class="document-columns">
        {rolledBackTo === undefined && (
          <div class="document-text" hidden={isConfirming}>
            <label>
              JSON{base.version > 0 && `, a change of version ${base.version}`}
              <textarea
                ref={area}
                class="mono"
                wrap="off"
                spellcheck={false}
                autocapitalize="none"
                autofocus
                value={text}
                aria-describedby={status}
                aria-invalid={(change.check.value?.problems.length ?? 0) > 0}
                data-testid="document-text"
                onInput={(event) => change.type(event.currentTarget.value)}
              />
            </label>
            <TextButtons change={change} />
          </div>
        )}
        <div class="document-report" aria-busy={!change.isChecked.value}>
          <Report change={change} statusId={status} area={area} />
        </div>
      </div>
      {isConfirming ? <Question change={change} close={close} /> : <Buttons change={change} close={close} />}
    </div>
  );
}

function TextButtons({ change }: { change: DocumentChange }) {
  const { text, base, setAside } = change.state.value;
  const applied = documentText(base.document);
  return (
    <div class="sheet-buttons">
      {text === applied && base.version === 0 && (
        <button type="button" class="link-button" data-testid="document-example" onClick={() => change.type(EXAMPLE)}>
          Begin with an example
        </button>
      )}
      {text !== applied && (
        <button type="button" class="link-button" onClick={() => change.type(applied)}>
          Take back all changes
        </button>
      )}
      {setAside !== undefined && (
        <button type="button" class="link-button" data-testid="document-put-back" onClick={() => change.swapSetAside()}>
          Show my other text
        </button>
      )}
    </div>
  );
}

interface ReportProps {
  change: DocumentChange;
  statusId: string;
  area: { current: HTMLTextAreaElement | null };
}

function Report({ change, statusId, area }: ReportProps) {
  const check = change.check.value;
  const error = change.checkError.value;
  // What somebody else has changed meanwhile is no part of what its author sees.
  const isOfBase = check?.version === change.state.value.base.version;
  const show = ({ path, position }: Remark): void => {
    const place = placeOf(change.state.peek().text, path, position);
    if (area.current && place) selectPlace(area.current, place);
  };
  return (
    <>
      <p id={statusId} role="status" class="document-summary" data-testid="document-summary">
        {error ? refusal(error) : !check ? "Checking…" : isOfBase || check.problems.length > 0 ? checkSummary(check) : "The document has changed meanwhile"}
        {/* Read out with the count: the list itself would be read whole at every letter. */}
        {!error && check?.problems[0] && <span class="visually-hidden">: {check.problems[0].text}</span>}
      </p>
      {error && (
        <button type="button" class="link-button" onClick={() => void change.checkNow()}>
          Check again
        </button>
      )}
      {check && !error && (
        <>
          <Remarks remarks={check.problems} name="Problems" show={show} />
          <Remarks remarks={check.notes} name="Notes" show={show} />
          {isOfBase && check.diff_text !== "" && <DocumentDiff text={check.diff_text} />}
        </>
      )}
    </>
  );
}

function Remarks({ remarks, name, show }: { remarks: readonly Remark[]; name: string; show: (remark: Remark) => void }) {
  if (remarks.length === 0) return null;
  return (
    <ul class="document-remarks" aria-label={name} data-testid={`document-${name.toLowerCase()}`}>
      {remarks.map((remark) => (
        <li key={remark.text} class={remark.kind ? undefined : "is-worrying"}>
          {remark.kind && <strong>{remark.kind}</strong>}
          <button type="button" title="Select the place in the text" onClick={() => show(remark)}>
            {remark.text}
          </button>
        </li>
      ))}
    </ul>
  );
}

function Buttons({ change, close }: SheetProps) {
  return (
    <div class="sheet-buttons document-buttons">
      <button
        type="button"
        class="primary-button"
        disabled={!change.isReady.value || !mayAdminister.value}
        data-testid="document-apply"
        onClick={() => change.confirm(true)}
      >
        {change.rolledBackTo === undefined ? "Apply…" : "Roll back…"}
      </button>
      <button type="button" class="secondary-button" onClick={close}>
        Close
      </button>
      <p class="muted">{whyNot.value ?? (change.rolledBackTo === undefined && change.isChanged && "Closing keeps what you have typed until the page is reloaded.")}</p>
    </div>
  );
}

function Question({ change, close }: SheetProps) {
  const { base, isSending } = change.state.value;
  const heading = useRef<HTMLHeadingElement>(null);
  // Not the button: a second Enter would answer before the question is read.
  useEffect(() => heading.current?.focus(), []);
  const listening = fleet.value.data?.nodes.nodes.filter(({ connected }) => connected).length ?? 0;
  return (
    <div class="sheet-buttons document-buttons" role="group" aria-labelledby="document-question">
      <h3 id="document-question" ref={heading} tabIndex={-1}>
        Apply this to all nodes? {listening === 1 ? "1 listens" : `${listening || "None"} listen`} now.
      </h3>
      <button
        type="button"
        class="primary-button"
        disabled={!change.isReady.value}
        data-testid="document-confirm"
        onClick={async () => {
          if (await change.apply()) close();
        }}
      >
        {isSending ? "Applying…" : `Apply as version ${base.version + 1}`}
      </button>
      <button type="button" class="secondary-button" onClick={() => change.confirm(false)}>
        Not yet
      </button>
    </div>
  );
}
