// The range: presets, any absolute or relative pair, a step back in width.

import { useState } from "preact/hooks";
import { describeRange, formatClock, isRelative, PRESETS, timeParameter, widened } from "../model/time-range.ts";
import { clock } from "./clock.ts";
import { ChevronIcon, ZoomOutIcon } from "./icons.tsx";
import { Popover } from "./popover.tsx";
import { range, update, view } from "./store.ts";

export function TimePicker() {
  const { from, to, live, isUtc } = view.value;
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
            <span>{describeRange(from, to, range.value, isUtc)}</span>
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

function widen(): void {
  const { from, to } = view.peek();
  update(widened(from, to, range.peek(), Date.now()));
}

function inZone(text: string, isUtcNow: boolean, isUtc: boolean): string {
  const moment = timeParameter(text, isUtcNow);
  return moment === text.trim() ? text : formatClock(Number(moment), { date: true, isUtc });
}

function RangePanel({ close }: { close: () => void }) {
  const [fromText, setFrom] = useState(
    isRelative(view.peek().from) ? view.peek().from : clock(range.peek().from, { date: true }),
  );
  const [toText, setTo] = useState(
    isRelative(view.peek().to) ? view.peek().to : clock(range.peek().to, { date: true }),
  );
  const { isUtc } = view.value;
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
          choose(timeParameter(fromText, isUtc), timeParameter(toText, isUtc));
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
        <p class="muted">{isUtc ? "UTC" : "Local time"}, RFC 3339, unix time, or now-90m</p>
        <button type="submit" class="primary-button">
          Apply
        </button>
        <label class="zone-toggle">
          <input
            type="checkbox"
            data-testid="utc-toggle"
            checked={isUtc}
            onChange={(event) => {
              const chosen = event.currentTarget.checked;
              // What was typed names the same moments in the other zone.
              setFrom(inZone(fromText, isUtc, chosen));
              setTo(inZone(toText, isUtc, chosen));
              update({ isUtc: chosen });
            }}
          />
          All times in UTC
        </label>
      </form>
    </div>
  );
}
