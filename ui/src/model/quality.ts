// The quality figures of `/api/v1/status`, in the order a reader needs them.

export interface QualitySource {
  /** `samples`, and one count for each result code of the unwinder; absent or null without an agent. */
  quality?: Record<string, number | null>;
  drops?: { reason: string; count: number }[];
}

export interface Quality {
  samples: number;
  /** Samples that have a user stack at all. */
  userStacks: number;
  complete: number;
  /** Every result code of the unwinder that is a fault and occurred, the most frequent first. */
  problems: { name: string; count: number }[];
  dropped: number;
}

/** A sample taken in a kernel thread has no user stack that could be incomplete. */
const NO_USER_STACK = "kernel_only";

export function qualityOf({ quality = {}, drops = [] }: QualitySource): Quality {
  // A server may add shares beside the counts.
  const counts = Object.entries(quality).map(([name, count]) => ({ name, count: Number.isInteger(count) ? Number(count) : 0 }));
  const countOf = (wanted: string): number => counts.find(({ name }) => name === wanted)?.count ?? 0;
  const samples = countOf("samples");
  const problems = counts
    .filter(({ name, count }) => count > 0 && !["samples", "complete", NO_USER_STACK].includes(name))
    .toSorted((left, right) => right.count - left.count);
  return {
    samples,
    // Without result codes nothing is known about the stacks, which is not the same as none being complete.
    userStacks: "complete" in quality ? Math.max(0, samples - countOf(NO_USER_STACK)) : 0,
    complete: countOf("complete"),
    problems,
    dropped: drops.reduce((sum, { count }) => sum + count, 0),
  };
}
