// What stands where an answer was not waited for, and what would have come sooner.

import { CANCELLED, type ApiError } from "../api/client.ts";
import { shorterRange } from "../model/waiting.ts";
import { isEveryService, range, selectService, services, update, view } from "./store.ts";

export const isCancelled = (error: ApiError): boolean => error.code === CANCELLED;

/** The budget of a query is spent, or the reader's patience was. */
export const isTooMuch = (error: ApiError): boolean => isCancelled(error) || error.code === "over_budget";

const LENGTH_TITLES: Record<string, string> = {
  "7d": "7 days",
  "1d": "day",
  "6h": "6 hours",
  "1h": "hour",
  "15m": "15 minutes",
  "5m": "5 minutes",
};

/** Buttons for questions that cost less than this one. */
export function CheaperActions() {
  const { from, to } = view.value;
  const shorter = shorterRange(from, to, range.value.to);
  const dearest = isEveryService.value ? services.value.data?.services[0]?.service : undefined;
  return (
    <>
      {shorter && (
        <button type="button" class="secondary-button" onClick={() => update({ from: shorter.from })}>
          Its last {LENGTH_TITLES[shorter.length]}
        </button>
      )}
      {dearest !== undefined && (
        <button type="button" class="secondary-button" onClick={() => selectService(dearest)}>
          Only {dearest}
        </button>
      )}
    </>
  );
}
