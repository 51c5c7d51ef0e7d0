// Above the code: where it is, what it costs of both denominators, and the choices.

import { signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { hotRows, type CodeRow, type SourceAnswer } from "../../model/source-rows.ts";
import { formatInteger, formatShare, formatValue } from "../../model/units.ts";
import { CODE_CHOICES, type CodeChoice } from "../../state/schema.ts";
import { copy } from "../actions.ts";
import { isZoomLost } from "../highlight.ts";
import { announce } from "../notice.ts";
import { Segmented } from "../segmented.tsx";
import { update, view } from "../store.ts";
import { wholeTotal } from "../whole.ts";
import { goToHottest, matches, stepCode } from "./code-steps.ts";
import { isOfCallPath, openedFiles } from "./source-answer.ts";

const CODE_TITLES: Record<CodeChoice, string> = { source: "Source", disassembly: "Disassembly", both: "Both" };

/** Larger files are no sources. */
const MOST_BYTES = 16 << 20;

type Place = NonNullable<SourceAnswer["place"]>;

interface SourceBarProps {
  answer: SourceAnswer;
  place: Place;
  rows: readonly CodeRow[];
  hasText: boolean;
}

export function SourceBar({ answer, place, rows, hasText }: SourceBarProps) {
  const { search } = view.value;
  const hot = hotRows(rows, place.total).length;
  const found = search === "" ? undefined : matches.value.length;
  return (
    <div class="source-bar">
      <div class="source-about">
        <PlaceChooser answer={answer} place={place} />
        <span data-testid="source-cost">{costOf(answer, place)}</span>
        {isZoomLost.value && <span class="source-path">the zoomed call path is not in this range</span>}
        {isOfCallPath.value && (
          <span class="source-path">
            for this call path{" "}
            <button type="button" class="link-button" onClick={() => update({ zoom: "", path: "" })}>
              all callers
            </button>
          </span>
        )}
        {answer.partial_reason !== undefined && <span class="muted">partial: {answer.partial_reason}</span>}
      </div>
      <div class="source-choices">
        <span class="source-steps" role="group" aria-label="Steps">
          <button type="button" class="link-button" title="The hottest line (h)" data-testid="hottest" onClick={goToHottest}>
            hottest
          </button>
          <button type="button" class="link-button" aria-label="Previous" title="Previous (N)" onClick={() => stepCode(-1)}>
            ↑
          </button>
          <button type="button" class="link-button" aria-label="Next" title="Next (n)" onClick={() => stepCode(1)}>
            ↓
          </button>
          <span class="muted" role="status" data-testid="source-found">
            {found === undefined ? `${formatInteger(hot)} hot` : `${formatInteger(found)} found`}
          </span>
        </span>
        {place.file !== "" && (
          <button type="button" class="link-button" title={place.file} onClick={() => void copy(place.file, "the path")}>
            copy path
          </button>
        )}
        {hasText && openedFiles.value.has(place.file) && (
          <button type="button" class="link-button" onClick={() => forget(place.file)}>
            close the opened file
          </button>
        )}
        <Segmented
          label="What is shown"
          value={view.value.code}
          options={CODE_CHOICES.map((choice) => [choice, CODE_TITLES[choice]])}
          onChange={(choice) => update({ code: choice })}
        />
      </div>
    </div>
  );
}

/** Both denominators: of what is looked at, and of everything. */
function costOf({ unit, total: inView }: SourceAnswer, { self, total }: Place): string {
  const whole = wholeTotal.value;
  const share = (value: number): string => {
    const ofView = formatShare(value, inView);
    return whole === undefined || whole === inView ? ofView : `${ofView} of view, ${formatShare(value, whole)} of all`;
  };
  return `self ${formatValue(self, unit)} (${share(self)}) · total ${formatValue(total, unit)} (${share(total)})`;
}

function nameOf({ file, binary }: { file: string; binary: string }): string {
  return [file === "" ? "file unknown" : file, binary].filter((part) => part !== "").join(" · ");
}

function PlaceChooser({ answer: { places, total }, place }: { answer: SourceAnswer; place: Place }) {
  if (places.length < 2) {
    return (
      <span class="source-place truncated" title={nameOf(place)}>
        {nameOf(place)}
      </span>
    );
  }
  const chosen = places.findIndex(({ file, binary }) => file === place.file && binary === place.binary);
  return (
    <label class="inline-field">
      <span>In</span>
      <select
        value={String(chosen)}
        data-testid="place-select"
        onChange={(event) => {
          const { file, binary } = places[Number(event.currentTarget.value)];
          update({ codeFile: file, codeBinary: binary });
        }}
      >
        {places.map((candidate, index) => (
          <option key={index} value={String(index)}>
            {formatShare(candidate.total, total)} {nameOf(candidate)}
          </option>
        ))}
      </select>
    </label>
  );
}

const isDragging = signal(false);

/** A file of the reader's disk; it goes nowhere but into this page. */
export function OpenFile({ file }: { file: string }) {
  const input = useRef<HTMLInputElement>(null);
  // What is prevented is taken: the page around would send it to the server.
  const take = (event: DragEvent): void => {
    event.preventDefault();
    isDragging.value = true;
  };
  return (
    <div
      class={`source-drop${isDragging.value ? " is-over" : ""}`}
      data-testid="source-drop"
      onDragEnter={take}
      onDragOver={take}
      onDragLeave={() => (isDragging.value = false)}
      onDrop={(event) => {
        event.preventDefault();
        isDragging.value = false;
        void open(file, event.dataTransfer?.files[0]);
      }}
    >
      <button type="button" class="secondary-button" onClick={() => input.current?.click()}>
        Open {baseName(file) || "the file"}…
      </button>
      <span class="muted">or drop it here; it stays in this browser</span>
      <input
        ref={input}
        type="file"
        class="visually-hidden"
        tabIndex={-1}
        aria-label="Source file"
        data-testid="source-file"
        onChange={(event) => void open(file, event.currentTarget.files?.[0])}
      />
    </div>
  );
}

async function open(name: string, file: File | undefined): Promise<void> {
  if (!file) return;
  if (file.size > MOST_BYTES) return announce(`${file.name} is too large for a source file`);
  const text = await file.text();
  openedFiles.value = new Map(openedFiles.peek()).set(name, text);
  if (file.name !== baseName(name)) announce(`Shows ${file.name} in place of ${baseName(name)}`);
}

function forget(name: string): void {
  const files = new Map(openedFiles.peek());
  files.delete(name);
  openedFiles.value = files;
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
