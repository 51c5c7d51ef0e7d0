// The view of a file, and the way back to what the server has.

import type { FileAbout } from "../../model/file-about.ts";
import { printFileReference } from "../../model/file-reference.ts";
import { momentText } from "../../model/time-range.ts";
import type { ViewState } from "../../state/schema.ts";

/** What one has looked for in one profile is not in another. */
const ANEW = {
  query: "{}",
  filters: "",
  path: "",
  zoom: "",
  pinned: "",
  search: "",
  groupBy: "",
  baseQuery: "",
  baseFrom: "",
  baseTo: "",
  baseFile: "",
} satisfies Partial<ViewState>;

export function viewOfFile(about: FileAbout, name: string): Partial<ViewState> {
  return {
    ...ANEW,
    screen: "profile",
    file: printFileReference({ id: about.id, name }),
    type: about.default_type ?? "",
    ...wholeOf(about),
    live: false,
  };
}

/** All of the time of a file. */
export function wholeOf({ from, to }: Pick<FileAbout, "from" | "to">): Pick<ViewState, "from" | "to"> {
  return { from: momentText(from), to: momentText(to) };
}

export const WITHOUT_FILE: Partial<ViewState> = { ...ANEW, file: "", type: "cpu", from: "now-1h", to: "now", live: true };
