// One share in words, with the denominator that it has.

import { formatShare } from "../model/units.ts";
import { wholeTotal } from "./whole.ts";

/** Of everything, whatever is left out; of `shown` while nobody knows what everything costs. */
export function shareOfAll(value: number, shown: number): string {
  const whole = wholeTotal.value;
  return whole === undefined ? `${formatShare(value, shown)} of shown` : `${formatShare(value, whole)} of all`;
}
