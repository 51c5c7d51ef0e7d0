// The profiles that stand in the page, as `write_html` and `write_html_diff` of candela-formats put them there.

import type { TopAnswer } from "../api/types.ts";
import type { ComparedFunction } from "../model/compared-functions.ts";
import { decodeComparison, type Comparison } from "../model/comparison.ts";
import { FlameTree } from "../model/flame-tree.ts";
import type { ProfileType } from "../model/profile-type.ts";

/** One profile type; or the one of a comparison, where columns and table have both profiles. Both texts are gzip in base64. */
export interface EmbeddedProfile {
  type: ProfileType;
  /** What `/api/v1/flamegraph` answers with `format=columns`. */
  columns: string;
  /** What `/api/v1/top` answers. */
  top: string;
}

export interface Embedded {
  schema: typeof PROFILES | typeof COMPARISON;
  title: string;
  profiles: EmbeddedProfile[];
}

/** What the table of a comparison says. */
export type ComparedAnswer = Omit<TopAnswer, "functions"> & { functions: ComparedFunction[] };

export const ELEMENT_ID = "candela-profiles";
const PROFILES = "candela/offline/v1";
export const COMPARISON = "candela/offline-diff/v1";

export function readEmbedded(text: string): Embedded {
  const embedded = JSON.parse(text) as Embedded;
  if (embedded.schema !== PROFILES && embedded.schema !== COMPARISON)
    throw new Error(`the page holds ${String(embedded.schema)}, its script reads ${PROFILES} and ${COMPARISON}`);
  return embedded;
}

export async function flameTreeOf(profile: EmbeddedProfile): Promise<FlameTree> {
  return FlameTree.decode(await inflated(profile.columns));
}

export async function topOf(profile: EmbeddedProfile): Promise<TopAnswer> {
  return (await tableOf(profile)) as TopAnswer;
}

export async function comparisonOf(profile: EmbeddedProfile): Promise<Comparison> {
  return decodeComparison(await inflated(profile.columns));
}

export async function comparedAnswerOf(profile: EmbeddedProfile): Promise<ComparedAnswer> {
  return (await tableOf(profile)) as ComparedAnswer;
}

async function tableOf(profile: EmbeddedProfile): Promise<unknown> {
  return JSON.parse(new TextDecoder().decode(await inflated(profile.top)));
}

async function inflated(text: string): Promise<ArrayBuffer> {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
