// What may have left nothing over, and the view without it: the buttons below "nothing here".

import type { ViewState } from "../state/schema.ts";
import { parseFilters, printFilters } from "./filters.ts";

export interface WayOut {
  label: string;
  patch: Partial<ViewState>;
}

/** The narrowest first: who lets go of that alone keeps most of what was chosen. */
export function waysOut({ query, from, to, filters, path, zoom, panes, file }: ViewState): WayOut[] {
  // Those that are switched off narrow nothing, and stay.
  const idle = printFilters(parseFilters(filters).filter(({ isOff }) => isOff));
  // Only the source is of what is zoomed to; everything is of the path.
  const isOfCallPath = path !== "" || (panes === "source" && zoom !== "");
  const isLastDay = from === "now-1d" && to === "now";
  const ways: [boolean, WayOut][] = [
    [isOfCallPath, { label: "All callers", patch: { path: "", zoom: "" } }],
    [filters !== idle, { label: "Clear filters", patch: { filters: idle, path: "", zoom: "" } }],
    [query !== "{}", { label: file === "" ? "All services" : "Clear the selector", patch: { query: "{}", zoom: "" } }],
    // A file is all of its time.
    [file === "" && !isLastDay, { label: "Last 24 hours", patch: { from: "now-1d", to: "now" } }],
  ];
  return ways.flatMap(([isThere, way]) => (isThere ? [way] : []));
}
