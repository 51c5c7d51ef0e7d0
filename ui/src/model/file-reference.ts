// A profile file as the address names it: what it contains as a number, and what it was called, for whoever has to find it again.

export interface FileReference {
  /** Of the content, as `POST /api/v1/files` tells it. */
  id: string;
  name: string;
}

/** `undefined` for a text that names none. */
export function parseFileReference(text: string): FileReference | undefined {
  const found = /^([0-9a-f]{32})\/(.+)$/.exec(text);
  return found?.[1] && found[2] ? { id: found[1], name: found[2] } : undefined;
}

export function printFileReference({ id, name }: FileReference): string {
  return `${id}/${name}`;
}
