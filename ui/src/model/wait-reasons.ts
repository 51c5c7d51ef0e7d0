// What threads wait for, in words: the values of the sample label `off_cpu_reason` that the agent gives.

import type { ProfileType } from "./profile-type.ts";

export const REASON_LABEL = "off_cpu_reason";
/** Not waiting at all: the part of wall-clock time on a CPU. */
export const ON_CPU = "cpu";
export const CPU_TYPE = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

const TITLES: Record<string, string> = {
  [ON_CPU]: "on CPU",
  sleep: "sleeping",
  futex: "locks",
  disk: "disk",
  network: "network",
  pipe: "pipes",
  poll: "polling",
  fault: "page faults",
  preempted: "preempted",
  other: "other waits",
};

/** What a reason means, in a sentence for its entry of the legend. */
const MEANINGS: Record<string, string> = {
  [ON_CPU]: "The thread ran.",
  sleep: "The thread asked to sleep for a time.",
  futex: "A mutex, a condition variable or another lock was not free.",
  disk: "A file or a block device was read, written or synced.",
  network: "A socket had nothing to read, or no room to write.",
  pipe: "The other end of a pipe was not ready.",
  poll: "An event loop waited for something to happen: mostly idle time.",
  fault: "A page of memory had to be fetched.",
  preempted: "The thread could have run, and another one had its CPU.",
  other: "The kernel's stack tells no reason that is known here.",
};

export function reasonTitle(reason: string | undefined): string {
  return reason === undefined ? "no reason known" : (TITLES[reason] ?? reason);
}

export function reasonMeaning(reason: string | undefined): string {
  if (reason === undefined) return "These samples have no label that says why: not every profiler gives one.";
  return MEANINGS[reason] ?? `The label ${REASON_LABEL} says ${reason}.`;
}

/** The design token of its colour; a reason that is not known has that of other waits. */
export function reasonToken(reason: string | undefined): string {
  if (reason === undefined) return "--reason-unknown";
  return `--reason-${reason in TITLES ? reason : "other"}`;
}

/** Samples with this reason, as a filter of labels. */
export function reasonPattern(reason: string): string {
  return `${REASON_LABEL}=^${reason.replaceAll(/[\\^$.*+?()[\]{}|,]/g, String.raw`\$&`)}$`;
}

/** Any reason: to leave out what waits. */
export const ANY_REASON = `${REASON_LABEL}=.`;

export function isWallTime({ name, sample_type: sampleType }: ProfileType): boolean {
  return name === "wall" || sampleType === "wall";
}

/** Whether samples of this type may say what they wait for. */
export function hasReasons(type: ProfileType): boolean {
  return type.name === "off_cpu" ? type.sample_unit === "nanoseconds" : isWallTime(type);
}
