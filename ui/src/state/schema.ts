// The whole state of the window, and how each part of it stands in the address. Version 1; see `upgrade.ts` for older links.

export type PaneChoice = "both" | "flame" | "table";
export type Orientation = "icicle" | "flame";
export type ColorBy = "package" | "file" | "binary";
export type SortColumn = "self" | "total" | "name";

export interface ViewState {
  /** Label selector, sent to the server as it is. */
  query: string;
  /** Profile type id, short name or prefix. */
  type: string;
  from: string;
  to: string;
  /** Refresh by itself while the range ends at now. */
  live: boolean;
  search: string;
  /** Name of the function pinned from the table. */
  pinned: string;
  /** Fingerprint of the zoomed node's path (`model/path-hash.ts`), empty for the root. */
  zoom: string;
  panes: PaneChoice;
  orientation: Orientation;
  colorBy: ColorBy;
  sortBy: SortColumn;
  descending: boolean;
}

/** A step the reader wants to come back from is pushed; a refinement of the same picture replaces the entry. */
export type HistoryMode = "push" | "replace";

interface FieldSpec<T> {
  parameter: string;
  initial: T;
  history: HistoryMode;
  print: (value: T) => string;
  /** `undefined` when the text is not a value of this field: the initial value is taken. */
  parse: (text: string) => T | undefined;
}

const text = (parameter: string, initial: string, history: HistoryMode): FieldSpec<string> => ({
  parameter,
  initial,
  history,
  print: (value) => value,
  parse: (value) => value,
});

const flag = (parameter: string, initial: boolean, history: HistoryMode): FieldSpec<boolean> => ({
  parameter,
  initial,
  history,
  print: (value) => (value ? "1" : "0"),
  parse: (value) => (value === "1" ? true : value === "0" ? false : undefined),
});

const choice = <T extends string>(
  parameter: string,
  values: readonly [T, ...T[]],
  history: HistoryMode,
): FieldSpec<T> => ({
  parameter,
  initial: values[0],
  history,
  print: (value) => value,
  parse: (value) => values.find((candidate) => candidate === value),
});

/** The order is the order in the address. */
export const FIELDS: { [K in keyof ViewState]: FieldSpec<ViewState[K]> } = {
  query: text("query", "{}", "push"),
  type: text("type", "cpu", "push"),
  from: text("from", "now-1h", "push"),
  to: text("to", "now", "push"),
  live: flag("live", true, "replace"),
  zoom: text("zoom", "", "push"),
  search: text("search", "", "replace"),
  pinned: text("fn", "", "replace"),
  panes: choice("view", ["both", "flame", "table"], "replace"),
  orientation: choice("dir", ["icicle", "flame"], "replace"),
  colorBy: choice("color", ["package", "file", "binary"], "replace"),
  sortBy: choice("sort", ["self", "total", "name"], "replace"),
  descending: flag("desc", true, "replace"),
};

export const FIELD_NAMES = Object.keys(FIELDS) as (keyof ViewState)[];

export function initialState(): ViewState {
  return Object.fromEntries(FIELD_NAMES.map((name) => [name, FIELDS[name].initial])) as unknown as ViewState;
}
