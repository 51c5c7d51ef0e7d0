// The state of the page as signals: the view (which is the address), and the answers it needs.

import { batch, computed, effect, signal, type ReadonlySignal } from "@preact/signals";
import { ApiClient, ApiError, UNREACHABLE, type Api, type Selection } from "../api/client.ts";
import { FileRequests } from "../api/file-requests.ts";
import type { StatusAnswer, TopAnswer } from "../api/types.ts";
import { baseRange } from "../model/base-range.ts";
import { parseFileReference } from "../model/file-reference.ts";
import { parseFilters } from "../model/filters.ts";
import type { FlameTree } from "../model/flame-tree.ts";
import { resolveType, type ProfileType } from "../model/profile-type.ts";
import { selectsAll, selectsEveryService, serviceOf, withService } from "../model/selector.ts";
import type { SeriesAnswer } from "../model/series.ts";
import type { ServicesAnswer } from "../model/services.ts";
import { isRelative, resolveTime, type TimeRange } from "../model/time-range.ts";
import type { HistoryMode, ViewState } from "../state/schema.ts";
import { nextLook } from "../state/polling.ts";
import { historyModeOf, parseLink, printLink, sharedState } from "../state/url.ts";
import { contentOf } from "./files/open-files.ts";
import { Loader } from "./loader.ts";
import { announce } from "./notice.ts";

const initialLink = parseLink(location.search);
export const view = signal<ViewState>(initialLink.state);
export const linkIsNewer = signal(initialLink.isNewer);

/** Changes the view, and with it the address. */
export function update(patch: Partial<ViewState>): void {
  const before = view.peek();
  const after = { ...before, ...patch };
  const history = historyModeOf(before, after);
  if (history === undefined) return;
  const link = printLink(after);
  remember(history, link);
  view.value = after;
}

function remember(history: HistoryMode, link: string): void {
  try {
    if (history === "push") window.history.pushState(null, "", link);
    else window.history.replaceState(null, "", link);
  } catch {
    // A page that is a file of its own may have no history: what is looked at is then not in the address.
  }
}

/** `patch` is what else that step changes. */
export function selectService(service: string | undefined, patch: Partial<ViewState> = {}): void {
  const query = withService(view.peek().query, service);
  if (query === undefined) announce("Mend the selector first: what it says would be lost");
  else update({ query, zoom: "", pinned: "", ...patch });
}

/** One field of the view. Whatever asks something reads it so: the view is a new object for each letter of a search. */
export function viewField<Name extends keyof ViewState>(name: Name): ReadonlySignal<ViewState[Name]> {
  return computed(() => view.value[name]);
}

const selector = viewField("query");
const selectedType = viewField("type");
const filterText = viewField("filters");
const pathText = viewField("path");
export const service = computed(() => serviceOf(selector.value));
/** The selector leaves the service open; it may also narrow it by more than one name. */
export const isEveryService = computed(() => selectsEveryService(selector.value));
/** A file that is looked at in place of what the server has. */
export const lookedAtFile = computed(() => parseFileReference(view.value.file));
/** What is looked at, as a heading. */
export const selectionTitle = computed(
  () => lookedAtFile.value?.name ?? service.value ?? (selectsAll(selector.value) ? "All services" : selector.value),
);

// === answers ===

/** For what only one screen asks; `api` is what every page asks. */
export const requests = new FileRequests(
  document.baseURI,
  () => {
    const file = parseFileReference(view.peek().file);
    return file && { file, base: parseFileReference(view.peek().baseFile) };
  },
  contentOf,
);

export let api: Api = new ApiClient(requests);
/** A page that answers itself has its profiles as they are: filters, paths and callers are asked of a server. */
export let hasServer = true;

/** Takes answers from elsewhere; called before `start`. */
export function answerWith(other: Api): void {
  api = other;
  hasServer = false;
}

const servicesLoader = new Loader<ServicesAnswer>("the services");
const typesLoader = new Loader<ProfileType[]>("the types");
const seriesLoader = new Loader<SeriesAnswer>("the line");
const topLoader = new Loader<TopAnswer>("the functions");
const flameLoader = new Loader<FlameTree>("the flame graph");
const statusLoader = new Loader<StatusAnswer>("the status");

export const services = servicesLoader.state;
export const types = typesLoader.state;
export const series = seriesLoader.state;
export const top = topLoader.state;
export const flame = flameLoader.state;
export const status = statusLoader.state;

const BAD_REQUEST = 400;

/** The range of the answers on the screen; relative ends are fixed once a refresh. */
export const range = signal<TimeRange>({ from: Date.now() - 3600e3, to: Date.now() });
/** The moment of that refresh: `now` in every time on the screen. */
const refreshedAt = signal(Date.now());

/** The range of what is compared with; `undefined` when a text is no time. */
export const shownBase = computed(() => baseRange(view.value, range.value, refreshedAt.value));

/** The view with the times of what is on the screen, for whoever looks at it later. */
export function fixedView(): ViewState {
  return sharedState(view.peek(), range.peek(), shownBase.peek());
}

/** Ask for every node instead of the server's default: for this selection, until the next live refresh. */
let wantsAllNodes = false;
const refreshCount = signal(0);

export function refresh(): void {
  refreshCount.value++;
}

export function loadAllNodes(): void {
  wantsAllNodes = true;
  refresh();
}

export const currentType = computed<ProfileType | undefined>(() =>
  resolveType(types.value.data ?? [], view.value.type),
);
export const isLive = computed(() => view.value.live && isRelative(view.value.to));
const panes = [flame, series, services, top] as const;
export const isLoading = computed(() => panes.some(({ value }) => value.loading));
/** The tree alone: views that need no more do not run again when a load begins. */
export const flameTree = computed(() => flame.value.data);
/** What is on the screen answers another question than the heading asks. */
export const isStale = computed(() => flame.value.isStale);
/** What was chosen; else series per service, which make sense only while no service is chosen. */
export const seriesGroup = computed(() => {
  const { groupBy, file } = view.value;
  if (groupBy !== "" || file !== "") return groupBy || undefined;
  return service.value === undefined ? "service_name" : undefined;
});

/** Who answers what tree and table are of. */
export interface PictureSource extends Pick<Api, "flameGraph" | "top"> {
  /** What its answers depend on, besides the selection. */
  question: () => string;
}

/** In place of the selection itself, while a screen compares it with something. */
export const pictureSource = signal<PictureSource | undefined>(undefined);

/** What is looked at, as it was chosen: the same at the next look, when a range that ends at now has moved on. */
export const question = computed(() => {
  const { query, type, from, to, filters, path, file } = view.value;
  return JSON.stringify([query, type, from, to, filters, path, file]);
});

/** What the answers depend on, whatever shows them. */
const requested = computed(() => JSON.stringify([question.value, pictureSource.value?.question() ?? ""]));

/** What is looked at, with the range of the answers on the screen. A new object is a new question, or the next look at the same one. */
export const selection = computed<Selection>(() => ({
  query: selector.value,
  type: selectedType.value,
  range: range.value,
  filters: parseFilters(filterText.value),
  path: pathText.value === "" ? [] : pathText.value.split("\n"),
}));

function loadEverything(): void {
  const { query, type, from, to, filters, file } = view.peek();
  const pictureQuestion = requested.peek();
  // A selector that does not parse goes to the server as it is, which says what is wrong with it.
  const everyService = withService(query, undefined) ?? query;
  const servicesQuestion = JSON.stringify([everyService, type, from, to, filters, file]);
  const now = Date.now();
  const fromTime = resolveTime(from, now);
  const toTime = resolveTime(to, now);
  if (fromTime === undefined || toTime === undefined) {
    const [field, text] = fromTime === undefined ? ["from", from] : ["to", to];
    const error = new ApiError(
      "bad_time",
      `${field} is no time: ${JSON.stringify(text)}`,
      "Use now-1h, 2026-11-21T10:00:00Z, or unix seconds.",
      BAD_REQUEST,
    );
    servicesLoader.fail(servicesQuestion, error);
    for (const loader of [seriesLoader, topLoader, flameLoader]) loader.fail(pictureQuestion, error);
    return;
  }
  refreshedAt.value = now;
  range.value = { from: fromTime, to: toTime };
  const asked = selection.peek();
  const maximumNodes = wantsAllNodes ? 0 : undefined;
  if (!awaitsSource()) void flameLoader.load(pictureQuestion, (abort) => picture().flameGraph(asked, maximumNodes, abort));
  void servicesLoader.load(servicesQuestion, (abort) => api.services({ ...asked, query: everyService }, abort));
  loadSeries(asked);
  if (!awaitsSource()) loadTop(asked);
  void typesLoader.load(JSON.stringify([query, from, to, file]), (abort) => api.types(asked, abort));
  void statusLoader.load("", (abort) => api.status(abort));
}

/** The code of a comparison is still on its way: one side alone would be asked for in vain. */
function awaitsSource(): boolean {
  return view.peek().screen === "compare" && pictureSource.peek() === undefined;
}

function picture(): Pick<Api, "flameGraph" | "top"> {
  return pictureSource.peek() ?? api;
}

let loadedGroup: string | undefined;

function loadSeries(asked: Selection): void {
  const group = seriesGroup.peek();
  loadedGroup = group;
  void seriesLoader.load(requested.peek(), (abort) => api.rates(asked, group, abort));
}

/** The order decides which rows a long table is cut to. */
const topOrder = computed(() => (view.value.sortBy === "total" ? "total" : "self"));

function loadTop(asked: Selection): void {
  const order = topOrder.peek();
  void topLoader.load(requested.peek(), (abort) => picture().top(asked, order, abort));
}

/** Starts loading and following; called once. */
export function start(): void {
  window.addEventListener("popstate", () => {
    view.value = parseLink(location.search).state;
  });

  let lastRequested = "";
  let failuresInRow = 0;
  effect(() => {
    const selectionKey = requested.value;
    void refreshCount.value;
    batch(() => {
      if (selectionKey !== lastRequested) {
        wantsAllNodes = false;
        failuresInRow = 0;
      }
      lastRequested = selectionKey;
      loadEverything();
    });
  });
  effect(() => {
    void topOrder.value;
    const { truncated } = topLoader.state.peek().data ?? {};
    if (!truncated || truncated.shown >= truncated.total) return;
    loadTop(selection.peek());
  });
  effect(() => {
    if (seriesGroup.value !== loadedGroup) loadSeries(selection.peek());
  });
  let isOverdue = false;
  const lookAgain = (): void => {
    isOverdue = document.visibilityState !== "visible";
    if (isOverdue) return;
    wantsAllNodes = false;
    refresh();
  };
  effect(() => {
    // An answer that takes longer than the pace would never arrive if the next look overtook it.
    if (isLoading.value) return undefined;
    const failures = panes.flatMap(({ value: { error } }) => error ?? []);
    failuresInRow = failures.length > 0 ? failuresInRow + 1 : 0;
    const delay = nextLook({
      isLive: isLive.value,
      isEmpty: flame.value.data?.isEmpty ?? false,
      failures: failures.map(({ code, status: answered }) => ({ isUnreachable: code === UNREACHABLE, status: answered })),
      failuresInRow,
    });
    if (delay === undefined) return undefined;
    const timer = setTimeout(lookAgain, delay);
    return () => clearTimeout(timer);
  });
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible" && (isOverdue || isLive.peek())) lookAgain();
  });
}
