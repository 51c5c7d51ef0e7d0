// The quality figures of `/api/v1/status`, in the order a reader needs them.

export interface QualitySource {
  /** `samples`, and one count for each result code of the unwinder; absent or null without an agent. */
  quality?: Record<string, number | null>;
  drops?: Drop[];
  /** What each reason counts, and whether what it counts is missing from the picture. */
  drop_reasons?: Record<string, DropKind>;
  /** What came in, by the way it came. */
  ingest?: Record<string, { profiles?: number }>;
}

interface Drop {
  reason: string;
  count: number;
}

interface DropKind {
  unit: string;
  is_loss: boolean;
  /** What helps against it, where the server knows. */
  remedy?: string | null;
}

export interface Quality {
  samples: number;
  /** Samples that have a user stack at all. */
  userStacks: number;
  complete: number;
  /** Every result code of the unwinder that is a fault and occurred, the most frequent first. */
  problems: { name: string; count: number }[];
  /** What is missing from the picture, by what was counted. */
  losses: Loss[];
  /** Everything that was counted, losses first. */
  drops: (Drop & { unit: string; isLoss: boolean; remedy: string | undefined })[];
}

export interface Loss {
  count: number;
  unit: string;
  /** So much of the whole that the picture misleads. */
  isWorrying: boolean;
}

/** A sample taken in a kernel thread has no user stack that could be incomplete. */
const NO_USER_STACK = "kernel_only";
const WORRYING_PART = 0.001;

/** The losses of agents and servers that do not say what their reasons mean. All others only cost detail, or may. */
const KNOWN_LOSSES: Record<string, string> = {
  sample_ring_full: "samples",
  sample_lost: "samples",
  window_full: "samples",
  symbolizer_behind: "samples",
  symbolizer_failed: "samples",
  exporter_behind: "samples",
  export_rejected: "series",
  spool_full: "profiles",
  spool_corrupt: "profiles",
  spool_write_failed: "profiles",
  "log record damaged on disk": "records",
  "block unreadable": "blocks",
};
const REFUSED_PREFIX = "refused: ";

export function qualityOf({ quality = {}, drops = [], drop_reasons: kinds = {}, ingest = {} }: QualitySource): Quality {
  // A server may add shares beside the counts.
  const counts = Object.entries(quality).map(([name, count]) => ({ name, count: Number.isInteger(count) ? Number(count) : 0 }));
  const countOf = (wanted: string): number => counts.find(({ name }) => name === wanted)?.count ?? 0;
  const samples = countOf("samples");
  const hasResults = counts.some(({ name, count }) => name !== "samples" && count > 0);
  const problems = counts
    .filter(({ name, count }) => count > 0 && !["samples", "complete", NO_USER_STACK].includes(name))
    .toSorted((left, right) => right.count - left.count);
  const explained = drops
    .filter(({ count }) => count > 0)
    .map(({ reason, count }) => {
      const { unit, is_loss: isLoss, remedy } = kinds[reason] ?? knownKind(reason);
      return { reason, count, unit, isLoss, remedy: remedy ?? undefined };
    });
  const profiles = Object.values(ingest).reduce((sum, way) => sum + (way.profiles ?? 0), 0);
  return {
    samples,
    // Without result codes nothing is known about the stacks, which is not the same as none being complete.
    userStacks: hasResults ? Math.max(0, samples - countOf(NO_USER_STACK)) : 0,
    complete: countOf("complete"),
    problems,
    losses: lossesOf(explained, { samples, profiles }),
    drops: explained.toSorted((left, right) => Number(right.isLoss) - Number(left.isLoss)),
  };
}

function knownKind(reason: string): DropKind {
  const unit = reason.startsWith(REFUSED_PREFIX) ? "profiles" : KNOWN_LOSSES[reason];
  return unit === undefined ? { unit: "", is_loss: false } : { unit, is_loss: true };
}

/** Frames, tables and samples are not one number. */
function lossesOf(drops: Quality["drops"], kept: Record<string, number>): Loss[] {
  const sums = new Map<string, number>();
  for (const { unit, count, isLoss } of drops) {
    if (isLoss) sums.set(unit, (sums.get(unit) ?? 0) + count);
  }
  return [...sums].map(([unit, count]) => {
    // Of what nobody counts the rest of, any loss may be much: a block is hours.
    const whole = kept[unit] === undefined ? count : kept[unit] + count;
    return { count, unit, isWorrying: count > whole * WORRYING_PART };
  });
}
