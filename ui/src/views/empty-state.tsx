// What to say instead of a picture: the cause, and what to do about it.

import { computed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { ApiError, UNREACHABLE } from "../api/client.ts";
import type { PartialHead } from "../model/columns.ts";
import { flame, flameTree, linkIsNewer, refresh, series, services, top, update, view } from "./store.ts";

export const hasFlameGraph = computed(() => flameTree.value !== undefined && !flameTree.value.isEmpty);

const NO_PROFILE = "No profile in this range";
const FIRST_PROFILE = "The first arrives about 3 s after the agent starts.";

export function ProfileState() {
  const { data, error, loading } = flame.value;
  if (error) return <Failure error={error} />;
  if (data?.isEmpty) return <Empty hint={data.header.hint} />;
  return loading ? <div class="state" role="status" aria-label="Loading" /> : null;
}

function Empty({ hint }: { hint: string | undefined }) {
  const { query, from, to } = view.value;
  const isNarrowed = query !== "{}";
  return (
    <State title={NO_PROFILE}>
      <p>{hint ?? FIRST_PROFILE}</p>
      {hint && !isNarrowed && <p class="muted">{FIRST_PROFILE}</p>}
      <p class="state-command">
        Nothing after that? <code>candela doctor</code> says what is missing on this host.
      </p>
      <div class="state-actions">
        {isNarrowed && <Action label="All services" onClick={() => update({ query: "{}", zoom: "" })} />}
        {!(from === "now-1d" && to === "now") && (
          <Action label="Last 24 hours" onClick={() => update({ from: "now-1d", to: "now" })} />
        )}
        <Action label="Look again" onClick={refresh} />
      </div>
    </State>
  );
}

function Failure({ error }: { error: ApiError }) {
  const isAway = error.code === UNREACHABLE;
  return (
    <State title={isAway ? "No answer from the server" : "This cannot be shown"} isError>
      <p>{capitalized(error.message)}.</p>
      {isAway ? (
        <p class="state-command">
          Start it with <code>candela up</code>. This page looks again every 2 s.
        </p>
      ) : (
        error.hint !== "" && <p class="state-command">{capitalized(error.hint)}</p>
      )}
      <div class="state-actions">
        {!isAway && view.value.query !== "{}" && (
          <Action label="Clear the selector" onClick={() => update({ query: "{}", zoom: "" })} />
        )}
        {(error.code === "bad_time" || error.code === "bad_range") && (
          <Action label="Last hour" onClick={() => update({ from: "now-1h", to: "now" })} />
        )}
        <Action label="Try again" onClick={refresh} />
      </div>
    </State>
  );
}

function State({
  title,
  isError = false,
  children,
}: {
  title: string;
  isError?: boolean;
  children: ComponentChildren;
}) {
  return (
    <div class={`state${isError ? " is-error" : ""}`} role={isError ? "alert" : "status"} data-testid="profile-state">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

function Action({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <button type="button" class="secondary-button" onClick={onClick}>
      {label}
    </button>
  );
}

export function NoServices() {
  const { data, error } = services.value;
  // While an error is looked into again it stays where it is.
  if (!data && !error) return null;
  return <p class="services-empty muted">{error?.message ?? "No service has sent anything in this range."}</p>;
}

export function TableState() {
  if (top.value.error) return <p class="top-empty muted">{top.value.error.message}</p>;
  if (!top.value.data) return null;
  return (
    <p class="top-empty muted">
      {top.value.data.functions.length === 0 ? "No functions in this range." : "No function matches the search."}
    </p>
  );
}

/** Why any of the answers is only a part of what matches, each reason once. What helps depends on it: it says so itself. */
const partialReasons = computed(() => {
  const heads: (PartialHead | undefined)[] = [
    flame.value.data?.header,
    services.value.data,
    series.value.data,
    top.value.data,
  ];
  const partial = heads.filter((head) => head?.partial);
  return [...new Set(partial.map((head) => head?.partial_reason ?? "this is a part of what matches"))];
});

/** Above everything else: conditions that make what is shown less than it seems. */
export function Notices() {
  const { data, error } = flame.value;
  return (
    <>
      {linkIsNewer.value && (
        <Banner>This link was made by a newer Candela: what this version knows of it is shown.</Banner>
      )}
      {error?.code === UNREACHABLE && data && <Banner>The server does not answer; this is what it said last.</Banner>}
      {partialReasons.value.map((reason) => (
        <Banner key={reason}>{capitalized(reason)}.</Banner>
      ))}
    </>
  );
}

function Banner({ children }: { children: ComponentChildren }) {
  return (
    <p class="banner" role="status">
      {children}
    </p>
  );
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
