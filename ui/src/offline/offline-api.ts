// Answers of a server, out of the page itself.

import { ApiError, type Api, type Selection } from "../api/client.ts";
import type { StatusAnswer, TopAnswer } from "../api/types.ts";
import type { FlameTree } from "../model/flame-tree.ts";
import { resolveType, type ProfileType } from "../model/profile-type.ts";
import type { SeriesAnswer } from "../model/series.ts";
import type { ServicesAnswer } from "../model/services.ts";
import { flameTreeOf, topOf, type Embedded, type EmbeddedProfile } from "./profiles.ts";

const NOT_FOUND = 404;

export class OfflineApi implements Api {
  readonly #embedded: Embedded;

  constructor(embedded: Embedded) {
    this.#embedded = embedded;
  }

  types(): Promise<ProfileType[]> {
    return Promise.resolve(this.#embedded.profiles.map(({ type }) => type));
  }

  async flameGraph(selection: Selection): Promise<FlameTree> {
    return flameTreeOf(this.profile(selection));
  }

  async top(selection: Selection): Promise<TopAnswer> {
    return topOf(this.profile(selection));
  }

  services(selection: Selection): Promise<ServicesAnswer> {
    return Promise.resolve({ ...nothing(selection), services: [] });
  }

  rates(selection: Selection): Promise<SeriesAnswer> {
    return Promise.resolve({ ...nothing(selection), step_ms: 1000, series: [] });
  }

  status(): Promise<StatusAnswer> {
    return Promise.resolve({});
  }

  protected profile({ type: wanted }: Selection): EmbeddedProfile {
    const types = this.#embedded.profiles.map(({ type }) => type);
    const type = resolveType(types, wanted);
    const found = this.#embedded.profiles.find((profile) => profile.type === type);
    if (!found) throw new ApiError("no_such_type", `this file has no profile of type ${wanted}`, "", NOT_FOUND);
    return found;
  }
}

function nothing({ type, range }: Selection): { type: string; unit: string; from: number; to: number } {
  return { type, unit: "", ...range };
}
