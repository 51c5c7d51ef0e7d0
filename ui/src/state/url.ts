// The view state as an address and back. Parameters at their initial value are left out, so that links stay short.

import { isRelative, type TimeRange } from "../model/time-range.ts";
import { FIELD_NAMES, FIELDS, initialState, type HistoryMode, type ViewState } from "./schema.ts";
import { CURRENT_VERSION, upgradeLink } from "./upgrade.ts";

export interface ParsedLink {
  state: ViewState;
  isNewer: boolean;
}

export function parseLink(search: string): ParsedLink {
  const { parameters, isNewer } = upgradeLink(new URLSearchParams(search));
  const state = initialState();
  for (const name of FIELD_NAMES) readField(state, name, parameters);
  return { state, isNewer };
}

function readField<K extends keyof ViewState>(state: ViewState, name: K, parameters: URLSearchParams): void {
  const spec = FIELDS[name];
  const text = parameters.get(spec.parameter);
  if (text === null) return;
  const value = spec.parse(text);
  if (value !== undefined) state[name] = value;
}

/** The query part, with its question mark. */
export function printLink(state: ViewState): string {
  const parameters = new URLSearchParams({ v: String(CURRENT_VERSION) });
  for (const name of FIELD_NAMES) writeField(state, name, parameters);
  // URLSearchParams encodes what RFC 3986 allows in a query; selectors are read by people, so these are turned back.
  return `?${parameters.toString().replaceAll("%7B", "{").replaceAll("%7D", "}").replaceAll("%3A", ":").replaceAll("%2C", ",").replaceAll("%2F", "/")}`;
}

function writeField<K extends keyof ViewState>(state: ViewState, name: K, parameters: URLSearchParams): void {
  const spec = FIELDS[name];
  if (state[name] !== spec.initial) parameters.set(spec.parameter, spec.print(state[name]));
}

/** How a change goes into the history: pushed as soon as one changed field is a step of its own. */
export function historyModeOf(before: ViewState, after: ViewState): HistoryMode | undefined {
  const changed = FIELD_NAMES.filter((name) => before[name] !== after[name]);
  if (changed.length === 0) return undefined;
  return changed.some((name) => FIELDS[name].history === "push") ? "push" : "replace";
}

/** The state for a link that is sent to somebody: times are fixed to the range shown, because the reader's `now` is another. */
export function sharedState(state: ViewState, shown: TimeRange, base: TimeRange | undefined): ViewState {
  const fixedTimes = { ...state, from: fixed(state.from, shown.from), to: fixed(state.to, shown.to) };
  if (state.screen !== "compare" || state.baseFile !== "" || !base) return fixedTimes;
  return { ...fixedTimes, baseFrom: String(Math.round(base.from)), baseTo: String(Math.round(base.to)) };
}

function fixed(time: string, shown: number): string {
  return isRelative(time) ? String(Math.round(shown)) : time;
}
