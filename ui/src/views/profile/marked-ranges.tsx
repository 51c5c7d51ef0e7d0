// What is marked for a comparison, and the way to it.

import { isShortRange } from "../../model/time-range.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { clock } from "../clock.ts";
import { clearMarks, compareMarks, markedPair, marks } from "../range-marks.ts";

export function MarkedRanges() {
  const pair = markedPair.value;
  if (!pair) return null;
  const isOne = marks.value.length === 1;
  return (
    <div class="marked-ranges" role="status" data-testid="marked-ranges">
      <span class="muted">Before</span>
      <strong>{describe(pair.before)}</strong>
      <span class="muted">After</span>
      <strong>{isOne ? "everything shown" : describe(pair.after)}</strong>
      {isOne && <span class="muted">Shift marks the second range</span>}
      <span class="marked-actions">
        <button type="button" class="primary-button" data-testid="compare-marked" onClick={compareMarks}>
          Compare
        </button>
        <button type="button" class="secondary-button" onClick={clearMarks}>
          Forget
        </button>
      </span>
    </div>
  );
}

function describe(range: TimeRange): string {
  const milliseconds = isShortRange(range);
  return `${clock(range.from, { milliseconds })} – ${clock(range.to, { milliseconds })}`;
}
