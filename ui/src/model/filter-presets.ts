// Filters that one would type again and again. The command line has the same list: `--preset ID`.

import type { FilterKind } from "./filters.ts";
import presets from "./filter-presets.json" with { type: "json" };

export interface FilterPreset {
  id: string;
  name: string;
  /** What it is good for, in a sentence. */
  about: string;
  filters: readonly (readonly [FilterKind, string])[];
}

// A test reads every one of them: JSON has no pairs and no kinds.
export const FILTER_PRESETS = presets as unknown as readonly FilterPreset[];
