// Times as the page shows them: in the zone that the reader chose, which is in the address.

import { formatClock, type ClockOptions } from "../model/time-range.ts";
import { view } from "./store.ts";

/** Whoever draws it is drawn again when the zone changes. */
export function clock(milliseconds: number, options: Omit<ClockOptions, "isUtc"> = {}): string {
  return formatClock(milliseconds, { ...options, isUtc: view.value.isUtc });
}
