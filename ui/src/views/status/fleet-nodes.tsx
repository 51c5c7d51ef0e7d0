// The nodes with what their daemons do, those in trouble first.

import { useState } from "preact/hooks";
import { daemonCounts, daemonStates, isInTrouble, nodesByNeed, type Daemon, type FleetNode, type NodesAnswer } from "../../model/fleet.ts";
import { ago } from "../../model/status-figures.ts";
import { formatCount } from "../../model/units.ts";
import { clock } from "../clock.ts";
import { Hint } from "../hint.tsx";

/** A fleet of thousands is drawn when somebody wants to see it all. */
const SHOWN_NODES = 50;

export function FleetNodes({ answer, now }: { answer: NodesAnswer; now: number }) {
  const [isAll, setAll] = useState(false);
  const nodes = nodesByNeed(answer);
  if (nodes.length === 0) return <Hint text="No node listens. Each agent becomes one:" command="sudo candela agent --server URL" />;
  const shown = isAll ? nodes : nodes.slice(0, SHOWN_NODES);
  return (
    <>
      <ul class="fleet-rows" aria-label="Nodes" data-testid="fleet-nodes">
        {shown.map((node) => (
          <NodeRow key={`${node.node}/${node.daemon ?? ""}`} node={node} applied={answer.version} now={now} />
        ))}
      </ul>
      {shown.length < nodes.length && (
        <button type="button" class="link-button" onClick={() => setAll(true)}>
          Show all {formatCount(nodes.length)} nodes
        </button>
      )}
    </>
  );
}

function NodeRow({ node: { node, connected, seen, version, daemons }, applied, now }: { node: FleetNode; applied: number; now: number }) {
  return (
    <li>
      <strong>{node}</strong>
      <span class={connected ? undefined : "is-worrying"} title={clock(seen, { date: true })}>
        {connected ? "listens" : `away, seen ${ago(seen, now)}`}
      </span>
      <span class={version === applied ? undefined : "is-worrying"}>
        {version === null ? "has not reported" : `version ${version}`}
        {version !== null && version !== applied && `, not ${applied}`}
      </span>
      <span>{daemons.length === 0 ? "no daemon" : daemonStates(daemons)}</span>
      {daemons.map((daemon) => (
        <DaemonLine key={daemon.id} daemon={daemon} />
      ))}
    </li>
  );
}

function DaemonLine({ daemon }: { daemon: Daemon }) {
  const { id, state, since, last_error: error, notes = [] } = daemon;
  return (
    <p>
      <code>{id}</code> <span class={isInTrouble(daemon) ? "is-worrying" : "muted"}>{state.replaceAll("_", " ")}</span>
      <span class="muted">
        {since !== null && `, since ${clock(since, { date: true })}`} · {daemonCounts(daemon)}
      </span>
      {error !== null && <span class="is-worrying">: {error}</span>}
      {notes.map((note) => (
        <span key={note} class="muted">
          {" "}
          · {note}
        </span>
      ))}
    </p>
  );
}
