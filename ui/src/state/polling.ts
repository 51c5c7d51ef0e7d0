// When to ask the server again.

/** The parts of an `ApiError` that decide. */
export interface Failure {
  isUnreachable: boolean;
  /** The status of the answer, 0 without one. */
  status: number;
}

export interface Outcome {
  /** The range ends at now and the reader follows it. */
  isLive: boolean;
  /** The question was understood, and nothing matched. */
  isEmpty: boolean;
  /** Every answer that failed. */
  failures: readonly Failure[];
  /** Times in a row that any failed, this one included. */
  failuresInRow: number;
}

const REFRESH_MILLISECONDS = 10_000;
/** Nothing to see yet, or the server away: look again soon. */
const RETRY_MILLISECONDS = 2_000;
const LONGEST_DOUBLINGS = 4;
const TOO_MANY_REQUESTS = 429;

/** Milliseconds until the next look, or `undefined` when only a change of the question can change the answer. */
export function nextLook({ isLive, isEmpty, failures, failuresInRow }: Outcome): number | undefined {
  if (failures.some(({ isUnreachable }) => isUnreachable)) return RETRY_MILLISECONDS;
  if (failures.some(isRefusal)) return undefined;
  if (failures.length > 0) return REFRESH_MILLISECONDS * 2 ** Math.min(LONGEST_DOUBLINGS, Math.max(0, failuresInRow - 1));
  if (!isLive) return undefined;
  return isEmpty ? RETRY_MILLISECONDS : REFRESH_MILLISECONDS;
}

function isRefusal({ status }: Failure): boolean {
  return status >= 400 && status < 500 && status !== TOO_MANY_REQUESTS;
}
