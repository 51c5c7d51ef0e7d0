// The whole state of the window, and how each part of it stands in the address. Version 1; see `upgrade.ts` for older links.

export const SCREENS = ["profile", "services", "compare", "labels", "files", "status"] as const;
export type Screen = (typeof SCREENS)[number];
/** What the profile screen shows below the series. */
export const PANE_CHOICES = ["both", "flame", "table", "tree", "sandwich", "chart", "source"] as const;
export type PaneChoice = (typeof PANE_CHOICES)[number];
/** What the source pane shows of a function. */
export const CODE_CHOICES = ["source", "disassembly", "both"] as const;
export type CodeChoice = (typeof CODE_CHOICES)[number];
export type Orientation = "icicle" | "flame";
/** `auto` is by reason where samples say what they wait for, and by package elsewhere. */
export const COLOR_CHOICES = ["auto", "package", "file", "binary", "kind", "reason"] as const;
export type ColorBy = (typeof COLOR_CHOICES)[number];
/** How two profiles are made comparable; `candela-insight` has the formulas. */
export const NORMALIZATIONS = ["share", "absolute", "robust"] as const;
export type Normalization = (typeof NORMALIZATIONS)[number];
/** What part of the changes that are called significant may be chance: the usual one first. */
export const FDR_CHOICES = ["0.05", "0.001", "0.01", "0.1", "0.2"] as const;
export type FalseDiscoveryRate = (typeof FDR_CHOICES)[number];
/** Which functions of a comparison are listed. */
export const CHANGE_CHOICES = ["all", "significant", "changed", "new", "gone"] as const;
export type ChangeChoice = (typeof CHANGE_CHOICES)[number];
/** Whose widths boxes of a comparison have; empty: as who made the comparison says. */
export const WIDTH_CHOICES = ["", "before", "after"] as const;
export type WidthChoice = (typeof WIDTH_CHOICES)[number];
/** What a table of a comparison is about and ordered by. */
export const MEASURES = ["self", "total"] as const;
export type Measure = (typeof MEASURES)[number];
export const COMPARED_COLUMNS = ["change", "before", "after", "name"] as const;
export type ComparedColumn = (typeof COMPARED_COLUMNS)[number];
export const HEATMAP_CHOICES = ["auto", "samples", "profiles"] as const;
export type HeatmapOf = (typeof HEATMAP_CHOICES)[number];
export type SortColumn = "self" | "total" | "name";

export interface ViewState {
  screen: Screen;
  /** Label selector, sent to the server as it is. */
  query: string;
  /** Profile type id, short name or prefix. */
  type: string;
  from: string;
  to: string;
  /** Ordered filters as text (`model/filters.ts`). */
  filters: string;
  /** Names from the root to the subtree that was asked for at full depth, one a line as the API takes them; empty for everything. */
  path: string;
  /** The label whose values are told apart, empty for the service. */
  groupBy: string;
  /** What is compared with: a selector, and its range. Empty: the same selector, and the range before. */
  baseQuery: string;
  baseFrom: string;
  baseTo: string;
  /** The file that is looked at in place of what the server has, and the one it is compared with (`model/file-reference.ts`). */
  file: string;
  baseFile: string;
  normalization: Normalization;
  fdr: FalseDiscoveryRate;
  changes: ChangeChoice;
  widths: WidthChoice;
  comparedMeasure: Measure;
  comparedBy: ComparedColumn;
  comparedDescending: boolean;
  /** Times in UTC instead of the reader's zone. */
  isUtc: boolean;
  /** Refresh by itself while the range ends at now. */
  live: boolean;
  search: string;
  /** Name of the function pinned from the table. */
  pinned: string;
  /** Fingerprint of the zoomed node's path (`model/path-hash.ts`), empty for the root. */
  zoom: string;
  panes: PaneChoice;
  /** What has a lane each in the chart: threads when empty, else the values of this label. */
  laneBy: string;
  /** Which lanes are shown: a part of their name. */
  lanes: string;
  /** What a cell of the heatmap counts: samples where their times are stored, else profiles. */
  heatmapOf: HeatmapOf;
  code: CodeChoice;
  /** Source file and binary of the pinned function, where it is in several; empty for the heaviest. */
  codeFile: string;
  codeBinary: string;
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
  screen: choice("screen", SCREENS, "push"),
  query: text("query", "{}", "push"),
  type: text("type", "cpu", "push"),
  from: text("from", "now-1h", "push"),
  to: text("to", "now", "push"),
  filters: text("filters", "", "push"),
  path: text("path", "", "push"),
  groupBy: text("by", "", "push"),
  baseQuery: text("base_query", "", "push"),
  baseFrom: text("base_from", "", "push"),
  baseTo: text("base_to", "", "push"),
  file: text("file", "", "push"),
  baseFile: text("base_file", "", "push"),
  normalization: choice("norm", NORMALIZATIONS, "replace"),
  fdr: choice("fdr", FDR_CHOICES, "replace"),
  changes: choice("changes", CHANGE_CHOICES, "replace"),
  widths: choice("widths", WIDTH_CHOICES, "replace"),
  comparedMeasure: choice("change_of", MEASURES, "replace"),
  comparedBy: choice("change_sort", COMPARED_COLUMNS, "replace"),
  comparedDescending: flag("change_desc", true, "replace"),
  isUtc: flag("utc", false, "replace"),
  live: flag("live", true, "replace"),
  zoom: text("zoom", "", "push"),
  search: text("search", "", "replace"),
  pinned: text("fn", "", "replace"),
  panes: choice("view", PANE_CHOICES, "push"),
  laneBy: text("lane_by", "", "replace"),
  lanes: text("lanes", "", "replace"),
  heatmapOf: choice("heatmap", HEATMAP_CHOICES, "replace"),
  code: choice("code", CODE_CHOICES, "replace"),
  codeFile: text("code_file", "", "replace"),
  codeBinary: text("code_bin", "", "replace"),
  orientation: choice("dir", ["icicle", "flame"], "replace"),
  colorBy: choice("color", COLOR_CHOICES, "replace"),
  sortBy: choice("sort", ["self", "total", "name"], "replace"),
  descending: flag("desc", true, "replace"),
};

export const FIELD_NAMES = Object.keys(FIELDS) as (keyof ViewState)[];

export function initialState(): ViewState {
  return Object.fromEntries(FIELD_NAMES.map((name) => [name, FIELDS[name].initial])) as unknown as ViewState;
}
