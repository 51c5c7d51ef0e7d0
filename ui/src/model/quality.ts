// The quality figures of `/api/v1/status`, in the order a reader needs them.

export interface QualitySource {
  quality?: Record<string, number>;
  drops?: { reason: string; count: number }[];
}

export interface Quality {
  samples: number;
  complete: number;
  /** Every other result code of the unwinder that occurred, the most frequent first. */
  problems: { name: string; count: number }[];
  dropped: number;
}

export function qualityOf({ quality = {}, drops = [] }: QualitySource): Quality {
  const { samples = 0, complete = 0, ...codes } = quality;
  const problems = Object.entries(codes)
    .map(([name, count]) => ({ name, count }))
    .filter(({ count }) => count > 0)
    .toSorted((left, right) => right.count - left.count);
  return { samples, complete, problems, dropped: drops.reduce((sum, { count }) => sum + count, 0) };
}
