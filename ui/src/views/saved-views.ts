// Views and filters under names, kept on the server for everybody who reads there.

import { computed, signal } from "@preact/signals";
import { parseFilters, printFilters, withFilter } from "../model/filters.ts";
import { initialState } from "../state/schema.ts";
import { parseLink, printLink } from "../state/url.ts";
import { asApiError, Loader } from "./loader.ts";
import { announce } from "./notice.ts";
import { fixedView, requests, update, view } from "./store.ts";

export interface SavedView {
  id: string;
  name: string;
  kind: "view" | "filters";
  /** The query of an address, with its question mark, of any version. */
  address: string;
  author: string;
  created: number;
}

const loader = new Loader<SavedView[]>("saved views");

export const savedViews = computed(() => (loader.state.value.data ?? []).filter(({ kind }) => kind === "view"));
export const savedFilters = computed(() => (loader.state.value.data ?? []).filter(({ kind }) => kind === "filters"));
export const viewsError = computed(() => loader.state.value.error);

/** The menu is open. */
export const isSaving = signal(false);

export function loadSavedViews(): void {
  void loader.load("", async (abort) => (await requests.json<{ views: SavedView[] }>("views", [], abort)).views);
}

/** The link to a view, as this page prints it: older addresses are upgraded, and what is none of ours is left out. */
export function addressOf({ address }: Pick<SavedView, "address">): string {
  return printLink(parseLink(address).state);
}

export function openView(saved: SavedView): void {
  const { state, isNewer } = parseLink(saved.address);
  // The zone is the reader's.
  update({ ...state, isUtc: view.peek().isUtc });
  if (isNewer) announce("This view was saved by a newer Candela: what this version knows of it is shown");
}

/** What is looked at; relative times move with the time, fixed ones are those of the picture. */
export function saveView(name: string, hasFixedTimes: boolean): Promise<string | undefined> {
  const state = hasFixedTimes ? fixedView() : view.peek();
  return save({ name, kind: "view", address: printLink(state) });
}

export function saveFilters(name: string): Promise<string | undefined> {
  const filters = printFilters(parseFilters(view.peek().filters));
  return save({ name, kind: "filters", address: printLink({ ...initialState(), filters }) });
}

export function addFilters(saved: SavedView): void {
  const own = parseFilters(parseLink(saved.address).state.filters);
  const filters = own.reduce((sum, { kind, pattern }) => withFilter(sum, kind, pattern), view.peek().filters);
  update({ filters, zoom: "", path: "" });
}

async function save(given: Pick<SavedView, "name" | "kind" | "address">): Promise<string | undefined> {
  try {
    const { replaced } = await requests.change<{ replaced: boolean }>("POST", "views", [], given);
    announce(replaced ? `Saved again as ${given.name}` : `Saved as ${given.name}`);
  } catch (failure) {
    const { message, hint } = asApiError(failure);
    return hint === "" ? message : `${message}: ${hint}`;
  }
  loadSavedViews();
  return undefined;
}

export async function removeView({ id, name }: SavedView): Promise<void> {
  try {
    await requests.change("DELETE", "views", [["id", id]]);
    announce(`${name} is gone`);
  } catch (failure) {
    announce(asApiError(failure).message);
  }
  loadSavedViews();
}
