// Answers of the API that no model module owns. Fields a server may leave out are optional.

/** `/api/v1/top`: one row a function, computed before any pruning. */
export interface TopAnswer {
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
export interface StatusAnswer {
  version?: string;
  uptime_seconds?: number;
  drops?: { reason: string; count: number }[];
  /** `samples` and a count for each result code of the unwinder. */
  quality?: Record<string, number | null>;
  storage?: { blocks?: number; bytes?: number; head_samples?: number; wal_bytes?: number };
  agents?: { host?: string; version?: string; last_seen_ms?: number }[];
}
