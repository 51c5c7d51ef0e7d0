// Questions about a file: the same as about what is stored, with the file. It is sent when the server does not hold it any more.

import type { FileReference } from "../model/file-reference.ts";
import { ApiError, Requests, type Parameters } from "./requests.ts";

export interface AskedFiles {
  file: FileReference;
  /** What it is compared with; without one, with itself. */
  base: FileReference | undefined;
}

export const FILE_NOT_OPEN = "file_not_open";
const NOT_HELD = "file_not_held";

/** What can be asked of a file; everything else is about the server. */
const OF_FILES: ReadonlySet<string> = new Set([
  "flamegraph",
  "top",
  "tree",
  "callers",
  "diff",
  "series",
  "heatmap",
  "chart",
  "labels",
  "label-values",
  "types",
  "services",
  "pprof",
  "source",
  "disassembly",
]);

export class FileRequests extends Requests {
  readonly #asked: () => AskedFiles | undefined;
  readonly #contentOf: (id: string) => Blob | undefined;
  /** Files that are being sent: who asks meanwhile waits for the one. */
  readonly #sending = new Map<string, Promise<unknown>>();

  constructor(pageUrl: string, asked: () => AskedFiles | undefined, contentOf: (id: string) => Blob | undefined) {
    super(pageUrl);
    this.#asked = asked;
    this.#contentOf = contentOf;
  }

  override get(path: string, parameters: Parameters, signal: AbortSignal): Promise<Response> {
    const asked = this.#asked();
    if (!asked || !OF_FILES.has(path)) return super.get(path, parameters, signal);
    return this.#ask(path === "diff" ? asked : { ...asked, base: undefined }, path, parameters, signal);
  }

  async #ask(asked: AskedFiles, path: string, parameters: Parameters, signal: AbortSignal): Promise<Response> {
    const files = asked.base ? [asked.file, asked.base] : [asked.file];
    const contents = files.map((file) => this.#content(file));
    const ids: Parameters = [["file", asked.file.id], ...(asked.base ? [["base_file", asked.base.id] as const] : [])];
    const byId = (): Promise<Response> => this.send({ method: "POST" }, `files/${path}`, [...ids, ...parameters], signal);
    try {
      return await byId();
    } catch (error) {
      if (!isNotHeld(error)) throw error;
    }
    await Promise.all(files.map((file, index) => this.#send(file.id, contents[index] as Blob)));
    try {
      return await byId();
    } catch (error) {
      if (!isNotHeld(error)) throw error;
    }
    // Too large to be held, or others have taken its place.
    const body = new FormData();
    body.append("file", contents[0] as Blob);
    if (contents[1]) body.append("base_file", contents[1]);
    return this.send({ method: "POST", body }, `files/${path}`, parameters, signal);
  }

  #content({ id, name }: FileReference): Blob {
    const content = this.#contentOf(id);
    if (content) return content;
    const hint = "files stay in the page that opened them until it is reloaded: choose the file again, and the view comes back";
    throw new ApiError(FILE_NOT_OPEN, `this view is of the file ${name}, which is not open in this page`, hint);
  }

  /** What others wait for does not end with the one who began it. */
  #send(id: string, body: Blob): Promise<unknown> {
    const underWay = this.#sending.get(id);
    if (underWay) return underWay;
    const sent = this.send({ method: "POST", body }, "files", [], new AbortController().signal);
    this.#sending.set(id, sent);
    const forget = (): void => void this.#sending.delete(id);
    sent.then(forget, forget);
    return sent;
  }
}

function isNotHeld(error: unknown): boolean {
  return error instanceof ApiError && error.code === NOT_HELD;
}
