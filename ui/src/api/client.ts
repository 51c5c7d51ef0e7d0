// The requests of the window. Paths are relative to the page, so that any prefix of a reverse proxy works.

import { FlameTree } from "../model/flame-tree.ts";
import type { ProfileType } from "../model/profile-type.ts";
import type { SeriesAnswer } from "../model/series.ts";
import type { ServicesAnswer } from "../model/services.ts";
import { seriesStep, type TimeRange } from "../model/time-range.ts";
import type { StatusAnswer, TopAnswer } from "./types.ts";

/** The server's own words: what failed, why, what to do. Or ours, when it could not be reached or understood. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: string;
  readonly hint: string;
  /** Of the HTTP answer; 0 where there was none, or a good one that makes no sense. */
  readonly status: number;

  constructor(code: string, message: string, hint: string, status: number = 0) {
    super(message);
    this.code = code;
    this.hint = hint;
    this.status = status;
  }
}

export const UNREACHABLE = "unreachable";

/** A connection that died without a word, as over a laptop's sleep, would wait for ever. No query may take this long. */
const PATIENCE_MILLISECONDS = 120_000;

export interface Selection {
  query: string;
  type: string;
  range: TimeRange;
}

/** The rows asked of `/api/v1/top`: the table's search finds only what is here, and a whole host runs some thousand functions. */
const TOP_LIMIT = 10_000;

/** What the window asks for; a page without a server answers it itself. */
export type Api = Pick<ApiClient, keyof ApiClient>;

export class ApiClient {
  readonly #base: string;

  constructor(pageUrl: string) {
    this.#base = new URL("api/v1/", pageUrl).href;
  }

  services(selection: Selection, signal: AbortSignal): Promise<ServicesAnswer> {
    return this.#json("services", selectionParameters(selection), signal);
  }

  async types(selection: Selection, signal: AbortSignal): Promise<ProfileType[]> {
    const { type: _, ...withoutType } = selectionParameters(selection);
    const answer = await this.#json<{ types: ProfileType[] }>("types", withoutType, signal);
    return answer.types;
  }

  series(selection: Selection, groupBy: string | undefined, signal: AbortSignal): Promise<SeriesAnswer> {
    const step = String(seriesStep(selection.range));
    return this.#json(
      "series",
      { ...selectionParameters(selection), step, ...(groupBy ? { group_by: groupBy } : {}) },
      signal,
    );
  }

  top(selection: Selection, sort: "self" | "total", signal: AbortSignal): Promise<TopAnswer> {
    return this.#json("top", { ...selectionParameters(selection), sort, limit: String(TOP_LIMIT) }, signal);
  }

  /** `maximumNodes` 0 asks for every node. */
  async flameGraph(selection: Selection, maximumNodes: number | undefined, signal: AbortSignal): Promise<FlameTree> {
    const nodes: Record<string, string> = maximumNodes === undefined ? {} : { max_nodes: String(maximumNodes) };
    const response = await this.#get(
      "flamegraph",
      { ...selectionParameters(selection), format: "columns", ...nodes },
      signal,
    );
    const answer = await response.arrayBuffer().catch((error: unknown) => {
      if (signal.aborted) throw error;
      throw this.#unreachable();
    });
    return FlameTree.decode(answer);
  }

  status(signal: AbortSignal): Promise<StatusAnswer> {
    return this.#json("status", {}, signal);
  }

  /** The address of the same selection as gzipped pprof, for a link. */
  pprofUrl(selection: Selection): string {
    return this.#url("pprof", selectionParameters(selection));
  }

  #url(path: string, parameters: Record<string, string>): string {
    const query = new URLSearchParams(parameters).toString();
    return this.#base + path + (query === "" ? "" : `?${query}`);
  }

  async #json<T>(path: string, parameters: Record<string, string>, signal: AbortSignal): Promise<T> {
    const response = await this.#get(path, parameters, signal);
    try {
      return (await response.json()) as T;
    } catch (error) {
      if (signal.aborted) throw error;
      if (isTimeout(error)) throw this.#unreachable();
      throw new ApiError(
        "bad_answer",
        `the answer of ${path} is not JSON`,
        "Is something other than Candela listening at this address?",
      );
    }
  }

  async #get(path: string, parameters: Record<string, string>, signal: AbortSignal): Promise<Response> {
    let response: Response;
    try {
      const patience = AbortSignal.timeout(PATIENCE_MILLISECONDS);
      response = await fetch(this.#url(path, parameters), { signal: AbortSignal.any([signal, patience]) });
    } catch (error) {
      if (signal.aborted) throw error;
      throw this.#unreachable();
    }
    if (response.ok) return response;
    throw await errorOf(response, path);
  }

  #unreachable(): ApiError {
    return new ApiError(
      UNREACHABLE,
      `the server at ${new URL(this.#base).host} does not answer`,
      "Start it with: candela up",
    );
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === "TimeoutError";
}

async function errorOf(response: Response, path: string): Promise<ApiError> {
  const body = (await response.json().catch(() => ({}))) as { code?: string; message?: string; hint?: string };
  const fallback = `${path} failed with status ${response.status}`;
  return new ApiError(String(body.code ?? response.status), body.message ?? fallback, body.hint ?? "", response.status);
}

function selectionParameters({ query, type, range }: Selection): Record<string, string> {
  return { query, type, from: String(Math.round(range.from)), to: String(Math.round(range.to)) };
}
