// Everything that can be done by name: what the palette offers.

import { FILTER_PRESETS } from "../model/filter-presets.ts";
import { withFilters } from "../model/filters.ts";
import { typeTitle } from "../model/profile-type.ts";
import { capitalized } from "../model/sentence.ts";
import { PANE_CHOICES, SCREENS } from "../state/schema.ts";
import { copyCommand, copyLink } from "./actions.ts";
import { openExport } from "./export-parts.tsx";
import { isHelpOpen } from "./help.tsx";
import { isChooserOpen } from "./profile-chooser.tsx";
import { addNote, comparePreviousVersion, openNotes } from "./notes.ts";
import { addFilters, openView, savedFilters, savedViews } from "./saved-views.ts";
import { refresh, selectService, services, top, types, update, view } from "./store.ts";
import { toggleTheme } from "./theme.ts";

export interface Command {
  /** What kind of thing it is: `screen`, `service`, … */
  group: string;
  title: string;
  /** The key that does the same. */
  key?: string;
  act: () => void;
}

/** More names than this nobody types towards. */
const MOST_FUNCTIONS = 2000;

/** A file has no time before: with what it is compared is chosen from the list. */
export function compareWithBefore(): void {
  const { file, baseFile } = view.peek();
  update({ screen: file === "" || baseFile !== "" ? "compare" : "files" });
}

/** The menu stands beside the picture: who is elsewhere goes there first. */
function exportSeen(): void {
  if (!document.querySelector("[data-testid=export]")) update({ screen: "profile" });
  requestAnimationFrame(openExport);
}

const ACTIONS: readonly Command[] = [
  { group: "action", title: "Copy a link with fixed times", key: "y", act: copyLink },
  { group: "action", title: "Copy the command for a terminal", key: "Y", act: copyCommand },
  { group: "action", title: "Light or dark theme", key: "t", act: toggleTheme },
  { group: "action", title: "Times in UTC, or mine", key: "u", act: () => update({ isUtc: !view.peek().isUtc }) },
  { group: "action", title: "Follow live, or stop", key: "l", act: () => update({ live: !view.peek().live }) },
  { group: "action", title: "Refresh", key: "r", act: refresh },
  { group: "action", title: "Which profile do I need?", key: "w", act: () => (isChooserOpen.value = true) },
  { group: "action", title: "Keys", key: "?", act: () => (isHelpOpen.value = true) },
  { group: "action", title: "Export", key: "e", act: exportSeen },
  { group: "action", title: "Compare with the time before", key: "c", act: compareWithBefore },
  { group: "action", title: "Compare with the previous version", key: "v", act: () => void comparePreviousVersion() },
  { group: "action", title: "Deploys and notes in this range", act: () => (openNotes.value = {}) },
  { group: "action", title: "Add a note", key: "a", act: addNote },
  { group: "action", title: "Clear all filters", act: () => update({ filters: "", path: "", zoom: "" }) },
];

/** As things are at the moment. */
export function allCommands(): Command[] {
  return [
    ...SCREENS.map((screen) => ({ group: "screen", title: capitalized(screen), act: () => update({ screen }) })),
    ...PANE_CHOICES.map((panes, index) => ({
      group: "view",
      title: capitalized(panes),
      key: String(index + 1),
      act: () => update({ screen: "profile", panes }),
    })),
    ...ACTIONS,
    ...savedViews.peek().map((saved) => ({ group: "saved view", title: saved.name, act: () => openView(saved) })),
    ...savedFilters.peek().map((saved) => ({ group: "saved filter", title: saved.name, act: () => addFilters(saved) })),
    ...(services.peek().data?.services ?? []).map(({ service }) => ({
      group: "service",
      title: service,
      act: () => selectService(service),
    })),
    ...(types.peek().data ?? []).map((type) => ({
      group: "type",
      title: typeTitle(type),
      act: () => update({ type: type.id, zoom: "", path: "", pinned: "" }),
    })),
    ...FILTER_PRESETS.map(({ name, filters }) => ({
      group: "filter",
      title: name,
      act: () => update({ screen: "profile", filters: withFilters(view.peek().filters, filters), zoom: "", path: "" }),
    })),
    ...(top.peek().data?.functions ?? []).slice(0, MOST_FUNCTIONS).map(({ name }) => ({
      group: "function",
      title: name,
      act: () => update({ screen: "profile", pinned: name }),
    })),
  ];
}
