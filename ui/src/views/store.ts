// The state of the page as signals: the view (which is the address), and the answers it needs.

import { batch, computed, effect, signal } from "@preact/signals";
import { ApiClient, ApiError, UNREACHABLE, type Api, type Selection } from "../api/client.ts";
import type { StatusAnswer, TopAnswer } from "../api/types.ts";
import type { FlameTree } from "../model/flame-tree.ts";
import { resolveType, type ProfileType } from "../model/profile-type.ts";
import { selectsAll, selectsEveryService, serviceOf, withService } from "../model/selector.ts";
import { firstPoint, undeliveredMilliseconds, type SeriesAnswer } from "../model/series.ts";
import { observedSpan, type ServicesAnswer } from "../model/services.ts";
import { isRelative, resolveTime, type TimeRange } from "../model/time-range.ts";
import type { HistoryMode, ViewState } from "../state/schema.ts";
import { nextLook } from "../state/polling.ts";
import { historyModeOf, parseLink, printLink } from "../state/url.ts";
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

export function selectService(service: string | undefined): void {
  const query = withService(view.peek().query, service);
  if (query === undefined) announce("Mend the selector first: what it says would be lost");
  else update({ query, zoom: "", pinned: "" });
}

const selector = computed(() => view.value.query);
export const service = computed(() => serviceOf(selector.value));
/** The selector leaves the service open; it may also narrow it by more than one name. */
export const isEveryService = computed(() => selectsEveryService(selector.value));
/** What is looked at, as a heading. */
export const selectionTitle = computed(() => service.value ?? (selectsAll(selector.value) ? "All services" : selector.value));

// === answers ===

export let api: Api = new ApiClient(document.baseURI);

/** Takes answers from elsewhere; called before `start`. */
export function answerWith(other: Api): void {
  api = other;
}

const servicesLoader = new Loader<ServicesAnswer>();
const typesLoader = new Loader<ProfileType[]>();
const seriesLoader = new Loader<SeriesAnswer>();
const topLoader = new Loader<TopAnswer>();
const flameLoader = new Loader<FlameTree>();
const statusLoader = new Loader<StatusAnswer>();

export const services = servicesLoader.state;
export const types = typesLoader.state;
export const series = seriesLoader.state;
export const top = topLoader.state;
export const flame = flameLoader.state;
export const status = statusLoader.state;

const BAD_REQUEST = 400;

/** The range of the answers on the screen; relative ends are fixed once a refresh. */
export const range = signal<TimeRange>({ from: Date.now() - 3600e3, to: Date.now() });

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
/** Series per service make sense only while no service is chosen. */
export const seriesGroup = computed(() => (service.value === undefined ? "service_name" : undefined));

/** What was observed in the range of the services: what rates are averages over. */
export const observed = computed(() => {
  const answer = services.value.data;
  if (!answer) return undefined;
  // Also from the series of the selection before: what is on its way does not depend on what is asked, and the figures stay put.
  const { data, isStale: isOld } = series.value;
  const undelivered = data && isRelative(view.value.to) ? undeliveredMilliseconds(data) : 0;
  return observedSpan(answer, undelivered, data && !isOld && selectsAll(selector.value) ? firstPoint(data) : undefined);
});

const requested = computed(() => JSON.stringify([view.value.query, view.value.type, view.value.from, view.value.to]));

function loadEverything(): void {
  const { query, type, from, to } = view.peek();
  const question = requested.peek();
  // A selector that does not parse goes to the server as it is, which says what is wrong with it.
  const everyService = withService(query, undefined) ?? query;
  const servicesQuestion = JSON.stringify([everyService, type, from, to]);
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
    for (const loader of [seriesLoader, topLoader, flameLoader]) loader.fail(question, error);
    return;
  }
  range.value = { from: fromTime, to: toTime };
  const selection: Selection = { query, type, range: range.peek() };
  const maximumNodes = wantsAllNodes ? 0 : undefined;
  void flameLoader.load(question, (abort) => api.flameGraph(selection, maximumNodes, abort));
  void servicesLoader.load(servicesQuestion, (abort) => api.services({ ...selection, query: everyService }, abort));
  void seriesLoader.load(question, (abort) => api.series(selection, seriesGroup.peek(), abort));
  loadTop(selection);
  void typesLoader.load(JSON.stringify([query, from, to]), (abort) => api.types(selection, abort));
  void statusLoader.load("", (abort) => api.status(abort));
}

/** The order decides which rows a long table is cut to. */
const topOrder = computed(() => (view.value.sortBy === "total" ? "total" : "self"));

function loadTop(selection: Selection): void {
  const order = topOrder.peek();
  void topLoader.load(requested.peek(), (abort) => api.top(selection, order, abort));
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
    const { query, type } = view.peek();
    loadTop({ query, type, range: range.peek() });
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
