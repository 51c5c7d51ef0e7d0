// The range: presets, any absolute or relative pair, a step back in width.

import { useState } from "preact/hooks";
import { describeRange, formatClock, isRelative, PRESETS } from "../model/time-range.ts";
import { ChevronIcon, ZoomOutIcon } from "./icons.tsx";
import { Popover } from "./popover.tsx";
import { range, update, view } from "./store.ts";

export function TimePicker() {
  const { from, to, live } = view.value;
  const canFollow = isRelative(to);
  return (
    <div class="time-picker">
      <button type="button" class="icon-button" title="Twice the range" aria-label="Twice the range" onClick={widen}>
        <ZoomOutIcon />
      </button>
      <Popover
        title="Time range"
        align="right"
        className="time-popover"
        testId="range-label"
        label={
          <>
            <span>{describeRange(from, to, range.value)}</span>
            <ChevronIcon />
          </>
        }
      >
        {(close) => <RangePanel close={close} />}
      </Popover>
      <button
        type="button"
        class="live-button"
        aria-pressed={live && canFollow}
        title={canFollow ? "Refresh every 10 s" : "Return to a range that ends now"}
        onClick={() => (canFollow ? update({ live: !live }) : update({ from: "now-1h", to: "now", live: true }))}
      >
        <span class="live-dot" aria-hidden="true" />
        Live
      </button>
    </div>
  );
}

/** Wider around the same centre, but never into the future. */
function widen(): void {
  const { from, to } = range.peek();
  const width = to - from;
  const end = Math.min(Date.now(), to + width / 2);
  update({ from: String(Math.round(end - 2 * width)), to: String(Math.round(end)) });
}

function RangePanel({ close }: { close: () => void }) {
  const [fromText, setFrom] = useState(
    isRelative(view.peek().from) ? view.peek().from : formatClock(range.peek().from, { date: true }),
  );
  const [toText, setTo] = useState(
    isRelative(view.peek().to) ? view.peek().to : formatClock(range.peek().to, { date: true }),
  );
  const choose = (from: string, to: string): void => {
    update({ from, to });
    close();
  };
  return (
    <div class="range-panel">
      <ul class="preset-list">
        {PRESETS.map((preset) => (
          <li key={preset.from}>
            <button
              type="button"
              class="menu-item"
              aria-pressed={view.value.from === preset.from && view.value.to === "now"}
              onClick={() => choose(preset.from, "now")}
            >
              {preset.label}
            </button>
          </li>
        ))}
      </ul>
      <form
        class="range-form"
        onSubmit={(event) => {
          event.preventDefault();
          choose(asParameter(fromText), asParameter(toText));
        }}
      >
        <label>
          From
          <input value={fromText} onInput={(event) => setFrom(event.currentTarget.value)} spellcheck={false} />
        </label>
        <label>
          To
          <input value={toText} onInput={(event) => setTo(event.currentTarget.value)} spellcheck={false} />
        </label>
        <p class="muted">Local time, RFC 3339, unix time, or now-90m</p>
        <button type="submit" class="primary-button">
          Apply
        </button>
      </form>
    </div>
  );
}

/** A date without a zone is the reader's own: sent as unix milliseconds, so that a link means the same elsewhere. */
function asParameter(text: string): string {
  const local = /^\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2})?)?$/.test(text.trim())
    ? Date.parse(text.trim().replace(" ", "T"))
    : Number.NaN;
  return Number.isNaN(local) ? text.trim() : String(local);
}
