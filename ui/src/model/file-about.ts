// The answer of `POST /api/v1/files`: what is in a file.

import type { ProfileType } from "./profile-type.ts";
import { formatValue } from "./units.ts";

export interface FileNote {
  code: string;
  count: number;
  text: string;
}

export interface FileAbout {
  id: string;
  bytes: number;
  format: string;
  format_description: string;
  /** Unix milliseconds; where the file says no date they count from wherever its clock does. */
  from: number;
  to: number;
  is_dated: boolean;
  profiles: number;
  samples: number;
  default_type: string | null;
  types: (ProfileType & { total: number })[];
  labels: string[];
  notes: FileNote[];
  comments: string[];
}

/** The types with what they come to; the one that is shown first begins. */
export function typeTotals({ types, default_type: shown }: FileAbout): { type: ProfileType; total: string }[] {
  const ordered = types.toSorted((left, right) => Number(right.id === shown) - Number(left.id === shown));
  return ordered.map((type) => ({ type, total: formatValue(type.total, type.sample_unit) }));
}

/** `3 × labels without a value`. */
export function noteText({ count, text }: FileNote): string {
  return count === 1 ? text : `${text} (${count} times)`;
}

/** What two files can be compared by: the type that is shown of the one, if the other has it, or else the first that both have. */
export function commonType(before: FileAbout, after: FileAbout): string | undefined {
  const known = new Set(before.types.map(({ id }) => id));
  const { default_type: shown } = after;
  if (shown !== null && known.has(shown)) return shown;
  return typeTotals(after).find(({ type }) => known.has(type.id))?.type.id;
}
