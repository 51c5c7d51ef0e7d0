// From files that were dropped or chosen to files that can be looked at.

import { ApiError } from "../../api/requests.ts";
import type { FileAbout } from "../../model/file-about.ts";
import { printFileReference } from "../../model/file-reference.ts";
import { isLoopback } from "../../model/loopback.ts";
import { announce } from "../notice.ts";
import { refresh, requests, update, view } from "../store.ts";
import { viewOfFile } from "./file-view.ts";
import { openFiles, waitingFiles, type OpenFile } from "./open-files.ts";

/** The server that reads files is this machine: what is dropped does not leave it. */
export const isLocal = isLoopback(location.hostname);

let mayBeSent = isLocal;
let lastKey = 0;

/** Files of the reader; where they would leave the machine, the reader is asked first. */
export function receiveFiles(files: readonly File[]): void {
  if (files.length === 0) return;
  if (!mayBeSent) {
    waitingFiles.value = [...waitingFiles.peek(), ...files];
    update({ screen: "files" });
    return;
  }
  void readAll(files);
}

/** The reader agrees: what waits is sent, and what comes later, too, until the page is reloaded. */
export function sendWaiting(): void {
  mayBeSent = true;
  const files = waitingFiles.peek();
  waitingFiles.value = [];
  void readAll(files);
}

async function readAll(files: readonly File[]): Promise<void> {
  const begun = files.map((content): OpenFile => ({ key: ++lastKey, content, about: undefined, error: undefined }));
  openFiles.value = [...openFiles.peek(), ...begun];
  if (begun.length > 1) update({ screen: "files" });
  const read = await Promise.all(begun.map(readOne));
  const failed = read.filter(({ error }) => error);
  if (failed.length > 0) update({ screen: "files" });
  if (failed.length > 0) announce(`${failed.map(({ content }) => content.name).join(", ")}: cannot be read`);
  const [only] = read;
  if (isAwaited(read)) refresh();
  else if (read.length === 1 && only?.about) update(viewOfFile(only.about, only.content.name));
}

/** The address is about one of these: its view comes back. */
function isAwaited(read: readonly OpenFile[]): boolean {
  const { file, baseFile, screen } = view.peek();
  const names = read.flatMap(({ about, content }) => (about ? [printFileReference({ id: about.id, name: content.name })] : []));
  const isIt = names.some((name) => name === file || name === baseFile);
  if (isIt && screen === "files") update({ screen: baseFile === "" ? "profile" : "compare" });
  return isIt;
}

async function readOne(file: OpenFile): Promise<OpenFile> {
  const done: OpenFile = { ...file, ...(await outcomeOf(file.content)) };
  // What was open before as the same content is the same file: it is listed once.
  const others = openFiles.peek().filter(({ key, about }) => key === file.key || !about || about.id !== done.about?.id);
  openFiles.value = others.map((other) => (other.key === file.key ? done : other));
  return done;
}

async function outcomeOf(content: File): Promise<Pick<OpenFile, "about" | "error">> {
  try {
    const init = { method: "POST", body: content };
    const response = await requests.send(init, "files", [], new AbortController().signal);
    return { about: (await response.json()) as FileAbout, error: undefined };
  } catch (error) {
    const told = error instanceof ApiError ? error : new ApiError("unreadable", String(error), "Is the file still where it was?");
    return { about: undefined, error: told };
  }
}

export function closeFile(key: number): void {
  openFiles.value = openFiles.peek().filter((file) => file.key !== key);
}
