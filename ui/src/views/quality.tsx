// How far to trust the picture: what the agent could not unwind, what was dropped, who reports.

import { qualityOf } from "../model/quality.ts";
import { formatBytes, formatCount, formatShare } from "../model/units.ts";
import { Popover } from "./popover.tsx";
import { status } from "./store.ts";

/** Below this the picture misleads: callers are missing from more than a few stacks. */
const WORRYING_SHARE = 0.95;

export function Quality() {
  const answer = status.value.data;
  if (!answer) return null;
  const { samples, userStacks, complete, problems, dropped } = qualityOf(answer);
  const agents = answer.agents ?? [];
  const isWorrying = dropped > 0 || (userStacks > 0 && complete / userStacks < WORRYING_SHARE);
  return (
    <Popover
      title="Quality of the data"
      align="right"
      above
      className={`quality${isWorrying ? " is-worrying" : ""}`}
      label={
        <>
          {userStacks > 0 && <span>{formatShare(complete, userStacks)} complete stacks</span>}
          {dropped > 0 && <span>{formatCount(dropped)} dropped</span>}
          <span>
            {agents.length} {agents.length === 1 ? "agent" : "agents"}
          </span>
        </>
      }
    >
      {() => (
        <div class="quality-panel">
          <Facts
            title="Stacks since the server started"
            rows={[
              ["samples", formatCount(samples)],
              ["with a user stack", formatCount(userStacks)],
              ["of these complete", formatShare(complete, userStacks)],
              ...problems.map(({ name, count }): [string, string] => [
                name.replaceAll("_", " "),
                `${formatCount(count)} · ${formatShare(count, userStacks)}`,
              ]),
            ]}
          />
          <Facts
            title="Dropped"
            rows={(answer.drops ?? [])
              .filter(({ count }) => count > 0)
              .map(({ reason, count }) => [reason.replaceAll("_", " "), formatCount(count)])}
            none="nothing"
          />
          <Facts
            title="Agents"
            rows={agents.map(({ host = "?", version = "" }) => [host, version])}
            none="none has reported"
          />
          <Facts
            title={`Storage${answer.version ? `, candela ${answer.version}` : ""}`}
            rows={[
              ["blocks", `${formatCount(answer.storage?.blocks ?? 0)} · ${formatBytes(answer.storage?.bytes ?? 0)}`],
              ["not yet in a block", `${formatCount(answer.storage?.head_samples ?? 0)} samples`],
            ]}
          />
        </div>
      )}
    </Popover>
  );
}

function Facts({ title, rows, none = "" }: { title: string; rows: [string, string][]; none?: string }) {
  return (
    <section>
      <h2>{title}</h2>
      {rows.length === 0 && <p class="muted">{none}</p>}
      <dl>
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
