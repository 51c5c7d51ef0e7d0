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
    head_bytes?: number;
    oldest_ms?: number | null;
    damaged_records?: number;
    quarantined?: string[];
    last_retention_error?: string | null;
    wal_bytes?: number;
    /** Why the newest data could not be written to a block, while it cannot. */
    last_flush_error?: string | null;
    retention?: {
      max_bytes?: number | null;
      /** Profiles as they came are `raw`, the others sums. */
      tiers?: RetentionTier[];
      deleted_blocks?: number;
    };
  };
  agents?: AgentEntry[];
  ingest?: Record<string, { profiles?: number; samples?: number; bytes?: number }>;
  symbolization?: { unsymbolized?: number; pending?: string[]; last_error?: string | null };
  tenants?: Record<string, TenantEntry>;
}

export interface RetentionTier {
  tier: string;
  max_age_seconds: number | null;
  blocks?: number;
  bytes?: number;
  samples?: number;
  oldest_ms?: number | null;
}

interface TenantEntry {
  series?: number;
  /** 0 is no limit. */
  limits?: Record<string, number>;
}

export interface AgentEntry {
  host?: string;
  /** Of the program: ours is `candela`. */
  name?: string;
  version?: string;
  last_seen_ms?: number;
  /** Not heard of for a while. */
  is_stale?: boolean;
  /** What an agent of ours costs; parts per million of a core, bytes, thousandths of a hertz. */
  cost?: Record<string, number>;
  /** Of its programs in the kernel. */
  programs?: Record<string, Record<string, number>>;
  events?: Record<string, number>;
  /** Kinds that its host does not give. */
  missing?: { what: string; reason: string }[];
}
