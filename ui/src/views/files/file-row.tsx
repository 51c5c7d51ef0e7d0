// One file of the list: what it is, what the reader had to leave out, and what can be done with it.

import { useState } from "preact/hooks";
import { noteText, typeTotals, type FileAbout } from "../../model/file-about.ts";
import { typeTitle } from "../../model/profile-type.ts";
import { formatBytes, formatCount, formatSeconds } from "../../model/units.ts";
import { clock } from "../clock.ts";
import { FollowedLink } from "../followed-link.tsx";
import { viewOfFile } from "./file-view.ts";
import type { OpenFile } from "./open-files.ts";
import { closeFile } from "./receive.ts";
import { StoreForm } from "./store-form.tsx";

interface FileRowProps {
  file: OpenFile;
  side: "before" | "after" | undefined;
  choose: () => void;
}

const COLUMNS = 7;

export function FileRow({ file, side, choose }: FileRowProps) {
  const [isStoring, setStoring] = useState(false);
  const { about, content, error } = file;
  const { name } = content;
  return (
    <tbody data-testid="file-row" data-file={name}>
      <tr>
        <td class="files-side">
          {about && (
            <label title="Compare">
              <input type="checkbox" aria-label={`Compare ${name}`} checked={side !== undefined} onChange={choose} />
              <span class="muted">{side}</span>
            </label>
          )}
        </td>
        <th scope="row" title={name}>
          <span class="truncated">{name}</span>
          <span class="muted">{formatBytes(content.size)}</span>
        </th>
        {about ? <Contents about={about} /> : <Missing error={error} />}
        <td class="files-actions">
          {about && (
            <>
              <FollowedLink class="secondary-button" testId="open-file" patch={viewOfFile(about, name)}>
                Open
              </FollowedLink>
              <button
                type="button"
                class="link-button"
                aria-expanded={isStoring}
                aria-label={`Store ${name}`}
                data-testid="store-file"
                onClick={() => setStoring(!isStoring)}
              >
                Store…
              </button>
            </>
          )}
          <button type="button" class="link-button" aria-label={`Close ${name}`} onClick={() => closeFile(file.key)}>
            Close
          </button>
        </td>
      </tr>
      {about && about.notes.length > 0 && <Notes about={about} />}
      {about && isStoring && (
        <tr class="files-more">
          <td colSpan={COLUMNS}>
            <StoreForm file={content} about={about} />
          </td>
        </tr>
      )}
    </tbody>
  );
}

function Contents({ about }: { about: FileAbout }) {
  return (
    <>
      <td title={about.format_description}>{about.format}</td>
      <td class="is-text">
        {typeTotals(about).map(({ type, total }) => (
          <span key={type.id} class="files-type" title={type.id}>
            {typeTitle(type)} <span class="muted">{total}</span>
          </span>
        ))}
      </td>
      <td>{formatCount(about.samples)}</td>
      <td class="is-text">{timeOf(about)}</td>
    </>
  );
}

export function timeOf({ from, to, is_dated: isDated }: FileAbout): string {
  // One millisecond is none: the end is behind the last profile.
  const seconds = (to - from) / 1e3;
  const length = seconds > 0.0015 ? formatSeconds(seconds) : "";
  if (!isDated) return length === "" ? "no date" : `${length}, no date`;
  return length === "" ? clock(from, { date: true }) : `${clock(from, { date: true })}, ${length}`;
}

function Missing({ error }: { error: OpenFile["error"] }) {
  if (!error)
    return (
      <td colSpan={4} class="muted" aria-busy="true">
        is being read…
      </td>
    );
  return (
    <td colSpan={4} class="is-text files-error">
      <strong role="alert">{error.message}</strong>
      <span class="muted">{error.hint}</span>
    </td>
  );
}

function Notes({ about }: { about: FileAbout }) {
  return (
    <tr class="files-more">
      <td colSpan={COLUMNS} data-testid="file-notes">
        <ul>
          {about.notes.map((note) => (
            <li key={note.code}>{noteText(note)}</li>
          ))}
        </ul>
      </td>
    </tr>
  );
}
