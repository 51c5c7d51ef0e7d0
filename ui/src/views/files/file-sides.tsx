// The two sides of a comparison of files: which is before, which is after, and which samples of each.

import type { DiffSide } from "../../model/diff-answer.ts";
import { parseFileReference, printFileReference } from "../../model/file-reference.ts";
import { formatCount, formatValue } from "../../model/units.ts";
import type { ViewState } from "../../state/schema.ts";
import "../../styles/files.css";
import { sides } from "../compare/compared.ts";
import { BaseSelector } from "../compare/side.tsx";
import { FollowedLink } from "../followed-link.tsx";
import { update, view } from "../store.ts";
import { viewOfFile, wholeOf } from "./file-view.ts";
import { openFileOf, openFiles } from "./open-files.ts";

export function FileBefore() {
  const { file, baseFile } = view.value;
  return (
    <section class="compare-side is-before" aria-label="Before">
      <div class="compare-row">
        <h2>Before</h2>
        <FileSelect label="File before" testId="file-before" value={baseFile === "" ? file : baseFile} choose={chooseBefore} />
        <Total side={sides.value?.before} />
        <OpenAlone reference={baseFile === "" ? file : baseFile} testId="open-before" />
      </div>
      <div class="compare-row">
        <BaseSelector />
      </div>
    </section>
  );
}

export function FileAfter() {
  const { file, query } = view.value;
  return (
    <section class="compare-side is-after" aria-label="After">
      <div class="compare-row">
        <h2>After</h2>
        <FileSelect label="File after" testId="file-after" value={file} choose={(reference) => update(after(reference))} />
        <Total side={sides.value?.after} />
        <OpenAlone reference={file} testId="open-after" />
      </div>
      <div class="compare-row">
        <code class="truncated compare-query" title="Changed in the header above">
          {query}
        </code>
      </div>
    </section>
  );
}

/** Another look at the same two. */
export function swapFiles(): void {
  const { file, baseFile, query, baseQuery } = view.peek();
  if (baseFile === "") return;
  update({
    ...after(baseFile),
    baseFile: file,
    query: baseQuery === "" ? query : baseQuery,
    baseQuery: baseQuery === "" ? "" : query,
  });
}

function chooseBefore(reference: string): void {
  update({ baseFile: reference, baseFrom: "", baseTo: "", zoom: "", path: "" });
}

/** The range is that of the file after. */
function after(reference: string): Partial<ViewState> {
  const about = openFileOf(parseFileReference(reference)?.id ?? "")?.about;
  return { file: reference, ...(about && wholeOf(about)), zoom: "", path: "" };
}

function FileSelect({ label, testId, value, choose }: { label: string; testId: string; value: string; choose: (reference: string) => void }) {
  const known = openFiles.value.flatMap(({ about, content: { name } }) => (about ? [{ reference: printFileReference({ id: about.id, name }), name }] : []));
  const isKnown = known.some(({ reference }) => reference === value);
  return (
    <label class="select-field">
      <span class="visually-hidden">{label}</span>
      <select value={value} data-testid={testId} onChange={(event) => choose(event.currentTarget.value)}>
        {!isKnown && <option value={value}>{parseFileReference(value)?.name ?? "none"} (not open)</option>}
        {known.map(({ reference, name }) => (
          <option key={reference} value={reference}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function Total({ side }: { side: DiffSide | undefined }) {
  if (!side) return null;
  return (
    <span class="compare-total">
      <strong>{formatValue(side.total, sides.value?.unit ?? "")}</strong>
      <span class="muted">{side.samples !== null && `${formatCount(side.samples)} samples`}</span>
    </span>
  );
}

function OpenAlone({ reference, testId }: { reference: string; testId: string }) {
  const found = parseFileReference(reference);
  const about = found && openFileOf(found.id)?.about;
  if (!found || !about) return null;
  return (
    <FollowedLink class="link-button" testId={testId} patch={{ ...viewOfFile(about, found.name), type: view.value.type }}>
      open this side
    </FollowedLink>
  );
}
