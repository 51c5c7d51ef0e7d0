// What became of a snapshot on each node.

import type { SnapshotAnswer } from "../../model/fleet.ts";
import { refusal } from "../notes.ts";
import { isSnapshotAsked, snapshot } from "./fleet.ts";

export function SnapshotResults() {
  const { data, error, loading } = snapshot.value;
  if (!isSnapshotAsked.value) return null;
  return (
    <>
      <p role="status" data-testid="snapshot-status">
        {loading ? "The nodes take a snapshot…" : error ? refusal(error) : data && summary(data)}
      </p>
      {data && !loading && (
        <ul class="fleet-rows">
          {rows(data).map(({ node, status, object_key: key, error: reason }) => (
            <li key={node}>
              <strong>{node}</strong>
              <span class={status === "ok" ? undefined : "is-worrying"}>{status}</span>
              <p>{key ? <code>{key}</code> : reason}</p>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function rows({ results, away }: SnapshotAnswer): SnapshotAnswer["results"] {
  return [...results, ...away.map((node) => ({ node, status: "away", object_key: null, error: "it does not listen" }))];
}

function summary(answer: SnapshotAnswer): string {
  const all = rows(answer);
  return all.length === 0 ? "No node listens: there is nothing to take" : `${all.filter(({ status }) => status === "ok").length} of ${all.length} nodes have a snapshot`;
}
