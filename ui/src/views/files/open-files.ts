// The files of this page. They are nowhere else: a reload lets go of them.

import { signal } from "@preact/signals";
import type { ApiError } from "../../api/requests.ts";
import type { FileAbout } from "../../model/file-about.ts";

export interface OpenFile {
  /** Tells files of one name apart. */
  key: number;
  content: File;
  /** What the server read; `undefined` until then, and where it could not. */
  about: FileAbout | undefined;
  error: ApiError | undefined;
}

export const openFiles = signal<readonly OpenFile[]>([]);

/** Dropped, and not sent yet: the reader is asked first. */
export const waitingFiles = signal<readonly File[]>([]);

export function openFileOf(id: string): OpenFile | undefined {
  return openFiles.value.find(({ about }) => about?.id === id);
}

export function contentOf(id: string): Blob | undefined {
  return openFiles.peek().find(({ about }) => about?.id === id)?.content;
}
