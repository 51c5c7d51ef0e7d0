// The comparison of a file, out of the page itself.

import type { Selection } from "../api/client.ts";
import type { TopAnswer } from "../api/types.ts";
import type { Comparison } from "../model/comparison.ts";
import type { FlameTree } from "../model/flame-tree.ts";
import { shownTop, shownTree } from "../views/compare/compared.ts";
import { OfflineApi } from "./offline-api.ts";
import { comparedAnswerOf, comparisonOf } from "./profiles.ts";

export class ComparisonApi extends OfflineApi {
  #comparison: Comparison | undefined;

  override async flameGraph(selection: Selection): Promise<FlameTree> {
    return shownTree((this.#comparison ??= await comparisonOf(this.profile(selection))), undefined);
  }

  override async top(selection: Selection): Promise<TopAnswer> {
    const answer = await comparedAnswerOf(this.profile(selection));
    return shownTop(answer, answer.functions);
  }
}
