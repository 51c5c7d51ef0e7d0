// The profiles that stand in the page, as `write_html` of candela-formats puts them there.

import type { TopAnswer } from "../api/types.ts";
import { FlameTree } from "../model/flame-tree.ts";
import type { ProfileType } from "../model/profile-type.ts";

/** One profile type. Both texts are gzip in base64. */
interface EmbeddedProfile {
  type: ProfileType;
  /** What `/api/v1/flamegraph` answers with `format=columns`. */
  columns: string;
  /** What `/api/v1/top` answers. */
  top: string;
}

export interface Embedded {
  schema: string;
  title: string;
  profiles: EmbeddedProfile[];
}

export const ELEMENT_ID = "candela-profiles";
const SCHEMA = "candela/offline/v1";

export function readEmbedded(text: string): Embedded {
  const embedded = JSON.parse(text) as Embedded;
  if (embedded.schema !== SCHEMA) throw new Error(`the page holds ${embedded.schema}, its script reads ${SCHEMA}`);
  return embedded;
}

export async function flameTreeOf(profile: EmbeddedProfile): Promise<FlameTree> {
  return FlameTree.decode(await inflated(profile.columns));
}

export async function topOf(profile: EmbeddedProfile): Promise<TopAnswer> {
  return JSON.parse(new TextDecoder().decode(await inflated(profile.top))) as TopAnswer;
}

async function inflated(text: string): Promise<ArrayBuffer> {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
