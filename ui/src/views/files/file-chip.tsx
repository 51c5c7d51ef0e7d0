// In the header, in place of service and time: that a file is looked at, and the way back.

import { CloseIcon } from "../icons.tsx";
import { lookedAtFile, range, update } from "../store.ts";
import { momentText } from "../../model/time-range.ts";
import { WITHOUT_FILE, wholeOf } from "./file-view.ts";
import { openFileOf } from "./open-files.ts";

export function FileChip() {
  const file = lookedAtFile.value;
  if (!file) return null;
  const about = openFileOf(file.id)?.about;
  const { from, to } = range.value;
  const isPart = about !== undefined && (momentText(from) !== momentText(about.from) || momentText(to) !== momentText(about.to));
  return (
    <span class="file-chip" data-testid="file-chip">
      <span class="muted">File</span>
      <strong class="truncated" title={file.name}>
        {file.name}
      </strong>
      {isPart && (
        <button type="button" class="link-button" onClick={() => update(wholeOf(about))}>
          all of its time
        </button>
      )}
      <button
        type="button"
        class="clear-button"
        title="Back to what the server has"
        aria-label={`Leave the file ${file.name}`}
        data-testid="leave-file"
        onClick={() => update({ ...WITHOUT_FILE, screen: "profile" })}
      >
        <CloseIcon />
      </button>
    </span>
  );
}
