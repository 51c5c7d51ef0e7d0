// How the window asks: one request, its failures in the server's own words. Paths are relative to the page, so that any prefix of a
// reverse proxy works.

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
/** The reader did not want to wait. */
export const CANCELLED = "cancelled";

/** A connection that died without a word, as over a laptop's sleep, would wait for ever. No query may take this long. */
const PATIENCE_MILLISECONDS = 120_000;

/** Pairs and not a record: a filter may come several times, and their order counts. */
export type Parameters = readonly (readonly [name: string, value: string])[];

/** Other pages cannot send it, and the server asks for it where something is changed; it also keeps the browser's own dialog away. */
const WINDOW_HEADER = { "x-candela-window": "1" };

const UNAUTHORIZED = 401;

export class Requests {
  readonly #base: string;
  /** Called when the server wants to know who asks. */
  onUnauthorized: (error: ApiError) => void = () => undefined;

  constructor(pageUrl: string) {
    this.#base = new URL("api/v1/", pageUrl).href;
  }

  url(path: string, parameters: Parameters): string {
    const query = new URLSearchParams(parameters.map(([name, value]) => [name, value])).toString();
    return this.#base + path + (query === "" ? "" : `?${query}`);
  }

  async json<T>(path: string, parameters: Parameters, signal: AbortSignal): Promise<T> {
    const response = await this.get(path, parameters, signal);
    try {
      return (await response.json()) as T;
    } catch (error) {
      if (signal.aborted) throw error;
      if (isTimeout(error)) throw this.unreachable();
      throw new ApiError(
        "bad_answer",
        `the answer of ${path} is not JSON`,
        "Is something other than Candela listening at this address?",
      );
    }
  }

  /** Sends an object, or nothing but the question: what is kept on the server is changed by it. */
  async change<T>(method: "POST" | "DELETE", path: string, parameters: Parameters, body?: object): Promise<T> {
    const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
    const response = await this.send({ method, ...sent }, path, parameters, new AbortController().signal);
    return (await response.json()) as T;
  }

  get(path: string, parameters: Parameters, signal: AbortSignal): Promise<Response> {
    return this.send({}, path, parameters, signal);
  }

  /** An answer that is good; what is not is thrown. `init` says what is not a plain look: method, body. */
  async send(init: RequestInit, path: string, parameters: Parameters, signal: AbortSignal): Promise<Response> {
    let response: Response;
    try {
      const patience = AbortSignal.timeout(PATIENCE_MILLISECONDS);
      response = await fetch(this.url(path, parameters), { ...init, headers: { ...(init.headers as Record<string, string> | undefined), ...WINDOW_HEADER }, signal: AbortSignal.any([signal, patience]) });
    } catch (error) {
      if (signal.aborted) throw error;
      throw this.unreachable();
    }
    if (response.ok) return response;
    const error = await errorOf(response, path);
    if (response.status === UNAUTHORIZED) this.onUnauthorized(error);
    throw error;
  }

  unreachable(): ApiError {
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
