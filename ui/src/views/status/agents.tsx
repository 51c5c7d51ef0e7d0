// Who sends: version, when last, what it costs, what its host does not give.

import type { AgentEntry } from "../../api/types.ts";
import { agentCpu, agentMemory, agentRate, ago } from "../../model/status-figures.ts";
import { formatBytes, formatCount, formatNanoseconds } from "../../model/units.ts";
import { clock } from "../clock.ts";

export function Agents({ agents, now }: { agents: readonly AgentEntry[]; now: number }) {
  return (
    <section class="status-section" aria-labelledby="status-agents" data-testid="status-agents">
      <h2 id="status-agents">Agents</h2>
      {agents.length === 0 ? (
        <p class="muted">
          None has sent yet. <code>sudo candela agent --server URL</code> begins on another host, <code>sudo candela up</code> on this one.
        </p>
      ) : (
        <table class="wide-table">
          <thead>
            <tr>
              <th scope="col">Host</th>
              <th scope="col">Program</th>
              <th scope="col">Last seen</th>
              <th scope="col" class="is-number">CPU</th>
              <th scope="col" class="is-number">Memory</th>
              <th scope="col" class="is-number">Kernel maps</th>
              <th scope="col" class="is-number">Rate</th>
            </tr>
          </thead>
          <tbody>
            {agents.map((agent) => (
              <AgentRows key={`${agent.host} ${agent.name}`} agent={agent} now={now} />
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function AgentRows({ agent, now }: { agent: AgentEntry; now: number }) {
  const { host = "?", name = "", version = "", last_seen_ms: seen, is_stale: isStale = false, cost = {} } = agent;
  const seenText = seen === undefined ? "unknown" : ago(seen, now);
  return (
    <>
      <tr>
        <th scope="row">{host}</th>
        <td>
          {name} {version}
        </td>
        <td class={isStale ? "is-worrying" : undefined} title={seen === undefined ? undefined : clock(seen, { date: true })}>
          {isStale && "silent, "}
          {seenText}
        </td>
        <td class="is-number">{agentCpu(agent) ?? "–"}</td>
        <td class="is-number">{agentMemory(agent) ?? "–"}</td>
        <td class="is-number">{cost.map_bytes === undefined ? "–" : formatBytes(cost.map_bytes)}</td>
        <td class="is-number">{agentRate(agent) ?? "–"}</td>
      </tr>
      <AgentDetails agent={agent} />
    </>
  );
}

function AgentDetails({ agent: { missing = [], programs = {}, events = {} } }: { agent: AgentEntry }) {
  const hasPrograms = Object.keys(programs).length > 0 || Object.keys(events).length > 0;
  if (missing.length === 0 && !hasPrograms) return null;
  return (
    <tr class="is-detail">
      <td colSpan={7}>
        {missing.map(({ what, reason }) => (
          <p key={what} class="is-worrying">
            {what} is missing: {reason}
          </p>
        ))}
        {hasPrograms && (
          <details>
            <summary>Programs in the kernel, and what came from them</summary>
            <dl class="fact-list">
              {Object.entries(programs).map(([name, { estimated_run_time_ns: time = 0, estimated_runs: runs = 0 }]) => (
                <div key={name}>
                  <dt>{name.replaceAll("_", " ")}</dt>
                  <dd>
                    {formatNanoseconds(time)} in {formatCount(runs)} runs
                  </dd>
                </div>
              ))}
              {Object.entries(events).map(([name, count]) => (
                <div key={name}>
                  <dt>events: {name.replaceAll("_", " ")}</dt>
                  <dd>{formatCount(count)}</dd>
                </div>
              ))}
            </dl>
          </details>
        )}
      </td>
    </tr>
  );
}
