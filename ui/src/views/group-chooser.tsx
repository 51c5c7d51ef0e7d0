// By which label the series are told apart. The names are asked for when the list is opened.

import { useEffect, useState } from "preact/hooks";
import { rangeParameters } from "../api/client.ts";
import { ChevronIcon } from "./icons.tsx";
import { Popover } from "./popover.tsx";
import { requests, selection, update, view } from "./store.ts";

/** Of series and of samples, in the order of the server; `undefined` until it has answered. */
export function useLabelNames(): { names: readonly string[] | undefined; problem: string } {
  const [answer, setAnswer] = useState<{ names: readonly string[] | undefined; problem: string }>({ names: undefined, problem: "" });
  const { query, range } = selection.value;
  const question = JSON.stringify([query, view.value.from, view.value.to]);
  useEffect(() => {
    const abort = new AbortController();
    requests.json<{ labels: string[] }>("labels", [["query", query], ...rangeParameters(range)], abort.signal).then(
      ({ labels }) => setAnswer({ names: labels, problem: "" }),
      (error: unknown) => abort.signal.aborted || setAnswer({ names: undefined, problem: (error as Error).message }),
    );
    return () => abort.abort();
    // The ends of a live range move with every refresh; the names hardly do.
  }, [question]);
  return answer;
}

export function GroupChooser() {
  const { groupBy } = view.value;
  return (
    <Popover
      title="Tell the series apart by a label"
      align="right"
      className="group-chooser"
      testId="group-chooser"
      label={
        <>
          <span>by {groupBy === "" ? "service" : groupBy}</span>
          <ChevronIcon />
        </>
      }
    >
      {(close) => <GroupList close={close} />}
    </Popover>
  );
}

function GroupList({ close }: { close: () => void }) {
  const { groupBy } = view.value;
  const { names, problem } = useLabelNames();
  const choose = (label: string): void => {
    update({ groupBy: label });
    close();
  };
  const others = (names ?? []).filter((name) => name !== "service_name");
  return (
    <ul class="group-list">
      {["", ...others].map((label) => (
        <li key={label}>
          <button type="button" class="menu-item" aria-pressed={groupBy === label} onClick={() => choose(label)}>
            {label === "" ? "service" : label}
          </button>
        </li>
      ))}
      {names === undefined && <li class="menu-note muted">{problem === "" ? "Asking for labels…" : problem}</li>}
    </ul>
  );
}
