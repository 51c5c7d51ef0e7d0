// One answer of the server as a signal: what it says, to which question, and whether the next is on its way.

import { signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { ApiError, CANCELLED, UNREACHABLE } from "../api/client.ts";
import { DecodeError } from "../model/columns.ts";
import { waitFor } from "./waits.ts";

/** As some proxies call it: the reader's decision, which no later look may overrule. */
const CLIENT_CLOSED_REQUEST = 499;

export interface Resource<T> {
  data: T | undefined;
  /** The data answer an earlier question: they must not be read as the answer to what is asked now. */
  isStale: boolean;
  error: ApiError | undefined;
  loading: boolean;
}

export class Loader<T> {
  readonly #state: Signal<Resource<T>> = signal({ data: undefined, isStale: false, error: undefined, loading: true });
  #abort = new AbortController();
  /** The question that the data answer. */
  #answered = "";
  readonly #what: string;

  /** `what` is on its way while it loads, as a reader would say it: "the flame graph". */
  constructor(what: string) {
    this.#what = what;
  }

  get state(): ReadonlySignal<Resource<T>> {
    return this.#state;
  }

  /** What was there stays visible until the new answer is, marked when it answers another `question`. A load that is overtaken is dropped. */
  async load(question: string, request: (signal: AbortSignal) => Promise<T>): Promise<void> {
    this.#abort.abort();
    const abort = new AbortController();
    this.#abort = abort;
    const { data, error } = this.#state.peek();
    const isSame = this.#answered === question;
    this.#state.value = {
      data,
      isStale: data !== undefined && !isSame,
      // The refusal of another question is no news about this one.
      error: isSame ? error : undefined,
      loading: true,
    };
    const since = performance.now();
    const isAsked = !isSame || data === undefined;
    const done = waitFor({ what: this.#what, since, isAsked, cancel: () => this.#cancel(question, isAsked, since) });
    abort.signal.addEventListener("abort", done, { once: true });
    try {
      const answer = await request(abort.signal);
      if (abort.signal.aborted) return;
      this.#answered = question;
      this.#state.value = { data: answer, isStale: false, error: undefined, loading: false };
    } catch (failure) {
      if (!abort.signal.aborted) this.fail(question, asApiError(failure));
    } finally {
      done();
    }
  }

  /** What is on the screen stays where it answers the question; else there is nothing to show, and that is said. */
  #cancel(question: string, isAsked: boolean, since: number): void {
    if (isAsked) return this.fail(question, cancelled(performance.now() - since));
    this.#abort.abort();
    this.#state.value = { ...this.#state.peek(), loading: false };
  }

  /** Also ends the load under way: its answer would come back over the error. */
  fail(question: string, error: ApiError): void {
    this.#abort.abort();
    // A server that is away for a moment does not take the picture with it; a refused request does, and so does a new question.
    const data = error.code === UNREACHABLE && this.#answered === question ? this.#state.peek().data : undefined;
    this.#answered = question;
    this.#state.value = { data, isStale: false, error, loading: false };
  }
}

/** After so long. */
export function cancelled(milliseconds: number): ApiError {
  const hint = "A shorter range, or one service, is answered sooner.";
  return new ApiError(CANCELLED, `it was given up after ${(milliseconds / 1000).toFixed(1)} s, and the server no longer works on it`, hint, CLIENT_CLOSED_REQUEST);
}

export function asApiError(error: unknown): ApiError {
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
