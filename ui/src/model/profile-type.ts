// What the five parts of a profile type id mean to a reader.

/** One entry of `/api/v1/types`. */
export interface ProfileType {
  id: string;
  name: string;
  sample_type: string;
  sample_unit: string;
  period_type: string;
  period_unit: string;
  /** A type without a short name has none. */
  short: string | null;
}

const TITLES: Record<string, string> = {
  cpu: "CPU time",
  off_cpu: "Off-CPU time",
  wall: "Wall-clock time",
  lock: "Lock waits",
  alloc: "Allocations",
  inuse: "Memory in use",
  fault: "Page faults",
  growth: "Memory growth",
  io: "Block I/O",
  runq: "Scheduler delay",
  goroutine: "Goroutines",
  block: "Blocking",
  exception: "Exceptions",
};

/** What is counted has a better name than the short name of its type, which stands for several. */
const SAMPLE_TITLES: Record<string, string> = {
  inuse_space: "Memory in use",
  inuse_objects: "Objects in use",
  alloc_space: "Memory allocated",
  alloc_objects: "Objects allocated",
};

/** `name:sample_type:sample_unit:period_type:period_unit`; missing parts are empty. */
export function parseTypeId(id: string): ProfileType {
  const [name = "", sampleType = "", sampleUnit = "", periodType = "", periodUnit = ""] = id.split(":");
  return {
    id,
    name,
    sample_type: sampleType,
    sample_unit: sampleUnit,
    period_type: periodType,
    period_unit: periodUnit,
    short: sampleType || name,
  };
}

export function typeTitle(type: ProfileType): string {
  const named = SAMPLE_TITLES[type.sample_type];
  if (named !== undefined) return named;
  const title = TITLES[type.short ?? ""] ?? sentence(type.sample_type || type.name);
  // The same short name may stand for a time, a size and a count: say which.
  return type.sample_unit === "nanoseconds" || type.sample_unit === ""
    ? title
    : `${title} (${type.sample_type.replaceAll("_", " ")})`;
}

function sentence(identifier: string): string {
  const words = identifier.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** CPU time per time is a number of cores; other times are not. */
export function isCpuTime(typeId: string): boolean {
  const type = parseTypeId(typeId);
  return type.sample_unit === "nanoseconds" && (type.sample_type === "cpu" || type.period_type === "cpu");
}

/** A level at a moment (memory in use, goroutines): averaged over time, not a rate. */
export function isGauge(typeId: string): boolean {
  const { sample_type: sampleType } = parseTypeId(typeId);
  return sampleType.startsWith("inuse_") || sampleType === "goroutine" || sampleType === "goroutines";
}

/** The entry of the list that `wanted` (an id, a short name or a prefix of an id) means; time wins over size, size over counts. */
export function resolveType(types: readonly ProfileType[], wanted: string): ProfileType | undefined {
  const exact = types.find((type) => type.id === wanted);
  if (exact) return exact;
  const candidates = types.filter((type) => type.short === wanted || type.id.startsWith(wanted));
  const rank = (type: ProfileType): number => ({ nanoseconds: 0, bytes: 1 })[type.sample_unit] ?? 2;
  return candidates.toSorted((left, right) => rank(left) - rank(right))[0];
}
