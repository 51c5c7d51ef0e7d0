// What to say instead of a picture: the cause, and what to do about it.

import { computed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { ApiError, UNREACHABLE } from "../api/client.ts";
import { FILE_NOT_OPEN } from "../api/file-requests.ts";
import type { PartialHead } from "../model/columns.ts";
import { asSentence, capitalized } from "../model/sentence.ts";
import type { PaneChoice } from "../state/schema.ts";
import { CheaperActions, isCancelled, isTooMuch } from "./cancelled.tsx";
import { NothingHere, type Action } from "./nothing-here.tsx";
import { Skeleton } from "./skeleton.tsx";
import { flame, flameTree, linkIsNewer, lookedAtFile, refresh, series, services, top, update, view } from "./store.ts";

export const hasFlameGraph = computed(() => flameTree.value !== undefined && !flameTree.value.isEmpty);

const STATE_ID = "profile-state";
const FIRST_PROFILE = {
  text: "The first arrives about 3 s after the agent starts. If none does, this says what is missing on the host:",
  command: "candela doctor",
};

const HERE = { text: "Is something missing on this host?", command: "candela doctor" };

export function ProfileState() {
  const { data, error, loading } = flame.value;
  if (error) return <Failure error={error} />;
  if (data?.isEmpty) return <Empty hint={data.header.hint} />;
  return loading ? <Skeleton what="the flame graph" shape="flame" /> : null;
}

function Empty({ hint }: { hint: string | undefined }) {
  const { query, filters, path } = view.value;
  const isNarrowed = query !== "{}" || filters !== "" || path !== "";
  if (lookedAtFile.value) return <EmptyFile hint={hint} isNarrowed={isNarrowed} />;
  return <NothingHere title="No profile in this range" why={hint} testId={STATE_ID} {...(!isNarrowed && { hint: FIRST_PROFILE })} />;
}

function EmptyFile({ hint = "it has no samples of this type", isNarrowed }: { hint: string | undefined; isNarrowed: boolean }) {
  const all: Action = { label: "All of it", act: () => update({ query: "{}", filters: "", path: "", zoom: "" }) };
  return <NothingHere title="Nothing of this file" why={hint} testId={STATE_ID} also={isNarrowed ? [all] : []} />;
}

/** What the server refused, or that it is away, with what to do about it. */
export function Failure({ error, retry = refresh }: { error: ApiError; retry?: () => void }) {
  const isAway = error.code === UNREACHABLE;
  return (
    <div
      class={`state${isCancelled(error) ? "" : " is-error"}`}
      role={isCancelled(error) ? "status" : "alert"}
      data-testid={STATE_ID}
    >
      <h2>{titleOf(error)}</h2>
      <p>{asSentence(error.message)}</p>
      {isAway ? (
        <p class="state-command">
          Start it with <code>candela up</code>. This page looks again every 2 s.
        </p>
      ) : (
        error.hint !== "" && <p class="state-command">{capitalized(error.hint)}</p>
      )}
      <div class="state-actions">
        {error.code === FILE_NOT_OPEN ? (
          <ActionButton label="Choose the file" act={() => update({ screen: "files" })} />
        ) : (
          <ActionButton label={isCancelled(error) ? "Ask again" : "Try again"} act={retry} />
        )}
        {!isAway && !isTooMuch(error) && view.value.query !== "{}" && (
          <ActionButton label="Clear the selector" act={() => update({ query: "{}", zoom: "" })} />
        )}
        {(error.code === "bad_time" || error.code === "bad_range") && (
          <ActionButton label="Last hour" act={() => update({ from: "now-1h", to: "now" })} />
        )}
        {isTooMuch(error) && <CheaperActions />}
      </div>
    </div>
  );
}

function titleOf(error: ApiError): string {
  if (isCancelled(error)) return "Cancelled";
  return error.code === UNREACHABLE ? "No answer from the server" : "This cannot be shown";
}

/** A problem of one pane in a sentence, unless it is that of the picture: five panes that all say so do not make it clearer. */
export function besideThePicture(error: ApiError | undefined): string | undefined {
  const ofPicture = flame.value.error;
  if (error === undefined || error.message === ofPicture?.message) return undefined;
  if (isCancelled(error) && ofPicture && isCancelled(ofPicture)) return undefined;
  return asSentence(error.message);
}

export function NoServices() {
  const { data, error } = services.value;
  // While an error is looked into again it stays where it is.
  if (!data && !error) return <Skeleton what="the services" shape="rows" />;
  if (!error) return <NothingHere title="No service has sent anything in this range" isSmall hint={HERE} />;
  const text = besideThePicture(error);
  return text === undefined ? null : <p class="services-empty muted">{text}</p>;
}

const NO_SUCH_CHANGE = {
  significant: "No function changed by more than what may be chance.",
  changed: "No function changed.",
  new: "No function is new.",
  gone: "No function is gone.",
};

export function TableState() {
  const { data, error, isStale: isOfAnother } = top.value;
  if (error && view.value.panes === "table") return <Failure error={error} />;
  if (error) return <p class="top-empty muted">{besideThePicture(error)}</p>;
  if (!data || isOfAnother) return <Skeleton what="the functions" shape="rows" />;
  if (data.functions.length > 0) return <NoRows />;
  if (isPictureEmpty.value) return <p class="top-empty muted">No functions in this range.</p>;
  return <NothingHere title="No functions in this range" why={data.hint} isSmall />;
}

const WITH_PICTURE: ReadonlySet<PaneChoice> = new Set(["flame", "both", "tree"]);

/** The picture stands beside this and is empty: it says so, and what helps. */
const isPictureEmpty = computed(() => {
  const { screen, panes } = view.value;
  const hasPicture = screen === "compare" ? panes !== "table" : WITH_PICTURE.has(panes);
  return hasPicture && flame.value.data?.isEmpty === true;
});

/** Rows are chosen by the search, and in a comparison by what became of them: the one that is set is the reason. */
function NoRows() {
  const { screen, changes, search } = view.value;
  const isByChange = search === "" && screen === "compare" && changes !== "all";
  return (
    <p class="top-empty muted" role="status">
      {isByChange ? NO_SUCH_CHANGE[changes] : "No function matches the search."}{" "}
      {isByChange ? (
        <LinkButton label="show all functions" act={() => update({ changes: "all" })} />
      ) : (
        <LinkButton label="clear the search" act={() => update({ search: "" })} />
      )}
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
        <Banner key={reason}>{asSentence(reason)}</Banner>
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

function ActionButton({ label, act }: Action) {
  return (
    <button type="button" class="secondary-button" onClick={act}>
      {label}
    </button>
  );
}

/** Within a line of text. */
export function LinkButton({ label, act }: Action) {
  return (
    <button type="button" class="link-button" onClick={act}>
      {label}
    </button>
  );
}
