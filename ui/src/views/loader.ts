// One answer of the server as a signal: what it says, to which question, and whether the next is on its way.

import { signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { ApiError, UNREACHABLE } from "../api/client.ts";
import { DecodeError } from "../model/columns.ts";

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
    try {
      const answer = await request(abort.signal);
      if (abort.signal.aborted) return;
      this.#answered = question;
      this.#state.value = { data: answer, isStale: false, error: undefined, loading: false };
    } catch (failure) {
      if (!abort.signal.aborted) this.fail(question, asApiError(failure));
    }
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
