// Where filters act and their chips are not: that they do, and the way out.

import { parseFilters, printFilters } from "../model/filters.ts";
import { update, view } from "./store.ts";

export function NarrowedLine() {
  const filters = parseFilters(view.value.filters);
  const active = filters.filter(({ isOff }) => !isOff);
  if (active.length === 0) return null;
  return (
    <p class="muted" role="status" data-testid="narrowed" title={active.map(({ kind, pattern }) => `${kind} ${pattern}`).join("\n")}>
      narrowed by {active.length} {active.length === 1 ? "filter" : "filters"} ·{" "}
      <button
        type="button"
        class="link-button"
        // Those that are switched off narrow nothing, and stay for the profile.
        onClick={() => update({ filters: printFilters(filters.filter(({ isOff }) => isOff)), zoom: "", path: "" })}
      >
        clear
      </button>
    </p>
  );
}
