// Answers of the API that no model module owns. Fields a server may leave out are optional.

import type { PartialHead } from "../model/columns.ts";
import type { QualitySource } from "../model/quality.ts";

/** `/api/v1/top`: one row a function, computed before any pruning. */
export interface TopAnswer extends PartialHead {
  type: string;
  unit: string;
  total: number;
  functions: TopFunction[];
  truncated?: { shown: number; total: number };
  hint?: string;
}

export interface TopFunction {
  name: string;
  file: string;
  mapping: string;
  kind: string;
  self: number;
  total: number;
}

/** `/api/v1/status`, the parts the window shows. */
export interface StatusAnswer extends QualitySource {
  version?: string;
  uptime_seconds?: number;
  storage?: {
    blocks?: number;
    bytes?: number;
    head_samples?: number;
    wal_bytes?: number;
    /** Why the newest data could not be written to a block, while it cannot. */
    last_flush_error?: string | null;
    retention?: {
      max_bytes?: number | null;
      /** Profiles as they came are `raw`, the others sums. */
      tiers?: { tier: string; max_age_seconds: number | null }[];
      deleted_blocks?: number;
    };
  };
  agents?: AgentEntry[];
}

export interface AgentEntry {
  host?: string;
  version?: string;
  last_seen_ms?: number;
  /** Not heard of for a while. */
  is_stale?: boolean;
}
