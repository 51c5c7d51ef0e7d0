// The state of the page as signals: the view (which is the address), and the answers it needs.

import { batch, computed, effect, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { ApiClient, ApiError, UNREACHABLE, type Selection } from "../api/client.ts";
import type { StatusAnswer, TopAnswer } from "../api/types.ts";
import { DecodeError } from "../model/columns.ts";
import type { FlameTree } from "../model/flame-tree.ts";
import { resolveType, type ProfileType } from "../model/profile-type.ts";
import { serviceOf, withService } from "../model/selector.ts";
import { firstPoint, type SeriesAnswer } from "../model/series.ts";
import { coveredSeconds, type ServicesAnswer } from "../model/services.ts";
import { isRelative, resolveTime, type TimeRange } from "../model/time-range.ts";
import type { HistoryMode, ViewState } from "../state/schema.ts";
import { historyModeOf, parseLink, printLink } from "../state/url.ts";

export interface Resource<T> {
  data: T | undefined;
  error: ApiError | undefined;
  loading: boolean;
}

const REFRESH_MILLISECONDS = 10_000;
/** Nothing to see yet, or the server away: look again soon. */
const RETRY_MILLISECONDS = 2_000;

const initialLink = parseLink(location.search);
export const view = signal<ViewState>(initialLink.state);
export const linkIsNewer = signal(initialLink.isNewer);

/** Changes the view, and with it the address. */
export function update(patch: Partial<ViewState>, mode?: HistoryMode): void {
  const before = view.peek();
  const after = { ...before, ...patch };
  const history = historyModeOf(before, after);
  if (history === undefined) return;
  const link = printLink(after);
  if ((mode ?? history) === "push") window.history.pushState(null, "", link);
  else window.history.replaceState(null, "", link);
  view.value = after;
}

export function selectService(service: string | undefined): void {
  update({ query: withService(view.peek().query, service), zoom: "", pinned: "" });
}

export const service = computed(() => serviceOf(view.value.query));

// === answers ===

export const api = new ApiClient(document.baseURI);

class Loader<T> {
  readonly #state: Signal<Resource<T>> = signal({ data: undefined, error: undefined, loading: true });
  #abort = new AbortController();

  get state(): ReadonlySignal<Resource<T>> {
    return this.#state;
  }

  /** What was there stays visible until the new answer is. A load that is overtaken is dropped. */
  async load(request: (signal: AbortSignal) => Promise<T>): Promise<void> {
    this.#abort.abort();
    const abort = new AbortController();
    this.#abort = abort;
    this.#state.value = { ...this.#state.peek(), loading: true };
    try {
      const data = await request(abort.signal);
      if (!abort.signal.aborted) this.#state.value = { data, error: undefined, loading: false };
    } catch (error) {
      if (!abort.signal.aborted) this.fail(asApiError(error));
    }
  }

  fail(error: ApiError): void {
    // A server that is away for a moment does not take the picture with it; a refused request does.
    const data = error.code === UNREACHABLE ? this.#state.peek().data : undefined;
    this.#state.value = { data, error, loading: false };
  }
}

function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof DecodeError)
    return new ApiError(
      "bad_answer",
      error.message,
      "Reload the page; if it stays, page and server differ in version.",
    );
  return new ApiError(
    "window",
    error instanceof Error ? error.message : String(error),
    "This is a fault of the page. Reload it, and please report it.",
  );
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

/** The range of the answers on the screen; relative ends are fixed once a refresh. */
export const range = signal<TimeRange>({ from: Date.now() - 3600e3, to: Date.now() });

/** Ask for every node instead of the server's default; for this selection only. */
const allNodes = signal(false);
const refreshCount = signal(0);

export function refresh(): void {
  refreshCount.value++;
}

export function loadAllNodes(): void {
  allNodes.value = true;
}

export const currentType = computed<ProfileType | undefined>(() =>
  resolveType(types.value.data ?? [], view.value.type),
);
export const isLive = computed(() => view.value.live && isRelative(view.value.to));
export const isLoading = computed(
  () => flame.value.loading || series.value.loading || services.value.loading || top.value.loading,
);
/** Series per service make sense only while no service is chosen. */
export const seriesGroup = computed(() => (service.value === undefined ? "service_name" : undefined));

/** Seconds of the range in which anything was recorded: what rates are averages over. */
export const observedSeconds = computed(() => {
  const { data } = series.value;
  // The answer's own range: that of the page is ahead of it while a new one loads.
  const answer = services.value.data;
  return coveredSeconds(answer?.services ?? [], answer ?? range.value, data ? firstPoint(data) : undefined);
});

const requested = computed(() => JSON.stringify([view.value.query, view.value.type, view.value.from, view.value.to]));

function loadEverything(): void {
  const { query, type, from, to } = view.peek();
  const now = Date.now();
  const fromTime = resolveTime(from, now);
  const toTime = resolveTime(to, now);
  if (fromTime === undefined || toTime === undefined) {
    const [field, text] = fromTime === undefined ? ["from", from] : ["to", to];
    const error = new ApiError(
      "bad_time",
      `${field} is no time: ${JSON.stringify(text)}`,
      "Use now-1h, 2026-11-21T10:00:00Z, or unix seconds.",
    );
    for (const loader of [servicesLoader, seriesLoader, topLoader, flameLoader]) loader.fail(error);
    return;
  }
  range.value = { from: fromTime, to: toTime };
  const selection: Selection = { query, type, range: range.peek() };
  const everyService: Selection = { ...selection, query: withService(query, undefined) };
  void flameLoader.load((abort) => api.flameGraph(selection, allNodes.peek() ? 0 : undefined, abort));
  void servicesLoader.load((abort) => api.services(everyService, abort));
  void seriesLoader.load((abort) => api.series(selection, seriesGroup.peek(), abort));
  loadTop(selection);
  void typesLoader.load((abort) => api.types(selection, abort));
  void statusLoader.load((abort) => api.status(abort));
}

/** The order decides which rows a long table is cut to. */
const topOrder = computed(() => (view.value.sortBy === "total" ? "total" : "self"));

function loadTop(selection: Selection): void {
  const order = topOrder.peek();
  void topLoader.load((abort) => api.top(selection, order, abort));
}

/** Starts loading and following; called once. */
export function start(): void {
  window.addEventListener("popstate", () => {
    view.value = parseLink(location.search).state;
  });

  let lastRequested = "";
  effect(() => {
    const selectionKey = requested.value;
    void refreshCount.value;
    batch(() => {
      if (selectionKey !== lastRequested) allNodes.value = false;
      lastRequested = selectionKey;
      loadEverything();
    });
  });
  effect(() => {
    if (allNodes.value) refresh();
  });
  effect(() => {
    void topOrder.value;
    const { truncated } = topLoader.state.peek().data ?? {};
    if (!truncated || truncated.shown >= truncated.total) return;
    const { query, type } = view.peek();
    loadTop({ query, type, range: range.peek() });
  });
  effect(() => {
    const { data, error, loading } = flame.value;
    if (loading || !(isLive.value || error?.code === UNREACHABLE)) return undefined;
    const isWaiting = error?.code === UNREACHABLE || (data?.isEmpty ?? true);
    const timer = setTimeout(
      () => document.visibilityState === "visible" && refresh(),
      isWaiting ? RETRY_MILLISECONDS : REFRESH_MILLISECONDS,
    );
    return () => clearTimeout(timer);
  });
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible" && isLive.peek()) refresh();
  });
}
