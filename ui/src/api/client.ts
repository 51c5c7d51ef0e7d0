// What the window asks for.

import { filterParameters, type Filter } from "../model/filters.ts";
import { FlameTree } from "../model/flame-tree.ts";
import type { ProfileType } from "../model/profile-type.ts";
import type { SeriesAnswer } from "../model/series.ts";
import type { ServicesAnswer } from "../model/services.ts";
import { momentText, seriesStep, type TimeRange } from "../model/time-range.ts";
import type { Parameters, Requests } from "./requests.ts";
import type { StatusAnswer, TopAnswer } from "./types.ts";

export { ApiError, CANCELLED, UNREACHABLE } from "./requests.ts";

export interface Selection {
  query: string;
  type: string;
  range: TimeRange;
  filters: readonly Filter[];
  /** Names from the root to the subtree that is asked for, as the API takes them. */
  path: readonly string[];
}

/** The rows asked of `/api/v1/top`: the table's search finds only what is here, and a whole host runs some thousand functions. */
const TOP_LIMIT = 10_000;

/** What every page asks for; one without a server answers it itself. */
export type Api = Pick<ApiClient, keyof ApiClient>;

export class ApiClient {
  readonly #requests: Requests;

  constructor(requests: Requests) {
    this.#requests = requests;
  }

  services(selection: Selection, signal: AbortSignal): Promise<ServicesAnswer> {
    return this.#requests.json("services", wholeParameters(selection), signal);
  }

  async types({ query, range }: Selection, signal: AbortSignal): Promise<ProfileType[]> {
    const answer = await this.#requests.json<{ types: ProfileType[] }>(
      "types",
      [["query", query], ...rangeParameters(range)],
      signal,
    );
    return answer.types;
  }

  /** What is spent a second, over time; levels as they are. */
  rates(selection: Selection, groupBy: string | undefined, signal: AbortSignal): Promise<SeriesAnswer> {
    const step = String(seriesStep(selection.range));
    const groups: Parameters = groupBy ? [["group_by", groupBy]] : [];
    const parameters: Parameters = [...selectionParameters(selection), ["step", step], ["aggregation", "rate"], ...groups];
    return this.#requests.json("series", parameters, signal);
  }

  top(selection: Selection, sort: "self" | "total", signal: AbortSignal): Promise<TopAnswer> {
    return this.#requests.json(
      "top",
      [...selectionParameters(selection), ["sort", sort], ["limit", String(TOP_LIMIT)]],
      signal,
    );
  }

  /** `maximumNodes` 0 asks for every node. */
  async flameGraph(selection: Selection, maximumNodes: number | undefined, signal: AbortSignal): Promise<FlameTree> {
    const nodes: Parameters = maximumNodes === undefined ? [] : [["max_nodes", String(maximumNodes)]];
    const response = await this.#requests.get(
      "flamegraph",
      [...selectionParameters(selection), ["format", "columns"], ...nodes],
      signal,
    );
    const answer = await response.arrayBuffer().catch((error: unknown) => {
      if (signal.aborted) throw error;
      throw this.#requests.unreachable();
    });
    return FlameTree.decode(answer);
  }

  status(signal: AbortSignal): Promise<StatusAnswer> {
    return this.#requests.json("status", [], signal);
  }
}

/** Of the selection without its path: what a service costs does not depend on where in it one looks. */
export function wholeParameters({ query, type, range, filters }: Selection): Parameters {
  return [["query", query], ["type", type], ...rangeParameters(range), ...filterParameters(filters)];
}

export function selectionParameters(selection: Selection): Parameters {
  return [...wholeParameters(selection), ...selection.path.map((name) => ["path", name] as const)];
}

export function rangeParameters({ from, to }: TimeRange): Parameters {
  return [
    ["from", momentText(from)],
    ["to", momentText(to)],
  ];
}
