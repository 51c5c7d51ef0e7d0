// After a second of waiting: what for, how long, and the way out of it.

import { computed, signal, useSignalEffect } from "@preact/signals";
import "../styles/waiting.css";
import { longWait, namesOf } from "../model/waiting.ts";
import { announce } from "./notice.ts";
import { isLive, update } from "./store.ts";
import { cancelAll, waits } from "./waits.ts";

const TICK_MILLISECONDS = 200;
const now = signal(0);
const waited = computed(() => longWait(waits.value, now.value));
const isLong = computed(() => waited.value !== undefined);
const names = computed(() => namesOf(waits.value));

export function WaitLine() {
  useSignalEffect(() => {
    if (waits.value.length === 0) return undefined;
    now.value = performance.now();
    const timer = setInterval(() => (now.value = performance.now()), TICK_MILLISECONDS);
    return () => clearInterval(timer);
  });
  return (
    <div class="wait-line" role="status" hidden={!isLong.value} data-testid="wait-line">
      {isLong.value && (
        <>
          <span>
            Waiting for {names.value} <Elapsed />
          </span>
          <button type="button" class="secondary-button" onClick={cancel} data-testid="wait-cancel">
            Cancel
          </button>
          <span class="wait-bar" aria-hidden="true" />
        </>
      )}
    </div>
  );
}

/** Not read out: it changes all the time. */
function Elapsed() {
  return (
    <span class="wait-elapsed" aria-hidden="true">
      {Math.floor((waited.value ?? 0) / 1000)} s
    </span>
  );
}

export function cancel(): void {
  const isRefresh = waits.peek().every(({ isAsked }) => !isAsked);
  cancelAll();
  // Or the same wait would begin again in some seconds.
  if (!isRefresh || !isLive.peek()) return;
  update({ live: false });
  announce("Cancelled, and no longer live: l follows again");
}
