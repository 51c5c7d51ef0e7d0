// Above the picture of a file: what it is, what it comes to, and what its reader had to leave out.

import { noteText } from "../../model/file-about.ts";
import { parseTypeId, typeTitle } from "../../model/profile-type.ts";
import { formatValue } from "../../model/units.ts";
import "../../styles/files.css";
import { FollowedLink } from "../followed-link.tsx";
import { currentType, flame, flameTree, lookedAtFile, view } from "../store.ts";
import { timeOf } from "./file-row.tsx";
import { openFileOf, openFiles } from "./open-files.ts";

export function FileHead() {
  const file = lookedAtFile.value;
  if (!file) return null;
  const about = openFileOf(file.id)?.about;
  const tree = flame.value.isStale ? undefined : flameTree.value;
  return (
    <section class="file-head" aria-label="File" data-testid="file-head">
      <h1 class="truncated" title={file.name}>
        {file.name}
      </h1>
      {tree && !tree.isEmpty && <strong data-testid="file-total">{formatValue(tree.rootTotal, tree.header.unit)}</strong>}
      <span class="muted">
        {[
          typeTitle(currentType.value ?? parseTypeId(view.value.type)),
          ...(about ? [about.format, timeOf(about)] : []),
        ].join(" · ")}
      </span>
      {about && about.notes.length > 0 && (
        <details class="file-notes">
          <summary>{about.notes.length === 1 ? "1 remark of the reader" : `${about.notes.length} remarks of the reader`}</summary>
          <ul>
            {about.notes.map((note) => (
              <li key={note.code}>{noteText(note)}</li>
            ))}
          </ul>
        </details>
      )}
      <FollowedLink class="link-button file-all" patch={{ screen: "files" }} testId="all-files">
        {openFiles.value.length > 1 ? `all ${openFiles.value.length} files, and comparing them` : "files"}
      </FollowedLink>
    </section>
  );
}
