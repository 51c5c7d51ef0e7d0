// How far to trust the picture: what the agent could not unwind, what was dropped, who reports.

import type { AgentEntry, StatusAnswer } from "../api/types.ts";
import { qualityOf, type Quality as QualityFigures } from "../model/quality.ts";
import { formatBytes, formatCount, formatShare } from "../model/units.ts";
import { clock } from "./clock.ts";
import { Popover } from "./popover.tsx";
import { status } from "./store.ts";

/** Below this the picture misleads: callers are missing from more than a few stacks. */
const WORRYING_SHARE = 0.95;

const SECONDS_PER_DAY = 86_400;

export function Quality() {
  const answer = status.value.data;
  if (!answer) return null;
  const quality = qualityOf(answer);
  return (
    <Popover
      title="Quality of the data of all agents, since the server started"
      align="right"
      above
      className="quality"
      testId="quality"
      label={<Summary answer={answer} quality={quality} />}
    >
      {() => <Details answer={answer} quality={quality} />}
    </Popover>
  );
}

interface QualityProps {
  answer: StatusAnswer;
  quality: QualityFigures;
}

/** Only the words that give cause for worry have the colour of it. */
function Summary({ answer, quality }: QualityProps) {
  const { userStacks, complete, losses } = quality;
  const agents = answer.agents ?? [];
  const present = agents.filter((agent) => !agent.is_stale).length;
  return (
    <>
      {userStacks > 0 ? (
        <span class={`quality-complete ${worryClass(complete / userStacks < WORRYING_SHARE) ?? ""}`}>
          {formatShare(complete, userStacks)} complete stacks since start
        </span>
      ) : (
        agents.length > 0 && <span>quality of stacks unknown</span>
      )}
      {losses.map(({ count, unit, isWorrying }) => (
        <span key={unit} class={`quality-lost ${worryClass(isWorrying) ?? ""}`}>
          {formatCount(count)} {unit} lost
        </span>
      ))}
      {answer.storage?.last_flush_error && <span class="is-worrying">data cannot be written</span>}
      <span class={worryClass(present < agents.length)}>
        {present < agents.length && `${present} of `}
        {agents.length === 0 ? "no" : agents.length} {agents.length < 2 ? "agent" : "agents"}
      </span>
    </>
  );
}

function worryClass(isWorrying: boolean): string | undefined {
  return isWorrying ? "is-worrying" : undefined;
}

function Details({ answer, quality }: QualityProps) {
  const { samples, userStacks, complete, problems, drops } = quality;
  const { storage, agents = [], version } = answer;
  return (
    <div class="quality-panel">
      <Facts
        title="Stacks since the server started"
        none="unknown: no agent has told this server"
        rows={
          samples === 0
            ? []
            : [
                ["samples", formatCount(samples)],
                ["with a user stack", userStacks > 0 ? formatCount(userStacks) : "unknown"],
                ["of these complete", formatShare(complete, userStacks)],
                ...problems.map(({ name, count }): [string, string] => [
                  name.replaceAll("_", " "),
                  `${formatCount(count)} · ${formatShare(count, userStacks)}`,
                ]),
              ]
        }
      />
      <Facts
        title="Lost since the server started"
        rows={drops.filter(({ isLoss }) => isLoss).map(dropRow)}
        none="nothing"
      />
      {drops.some(({ isLoss }) => !isLoss) && (
        <Facts title="Shown with less detail" rows={drops.filter(({ isLoss }) => !isLoss).map(dropRow)} />
      )}
      <Facts title="Agents" rows={agents.map(agentRow)} none="none has reported" />
      <Facts
        title={`Storage${version ? `, candela ${version}` : ""}`}
        rows={[
          ["blocks", `${formatCount(storage?.blocks ?? 0)} · ${formatBytes(storage?.bytes ?? 0)}`],
          ["not yet in a block", `${formatCount(storage?.head_samples ?? 0)} samples`],
          ...(storage?.retention ? retentionRows(storage.retention) : []),
        ]}
      />
      {storage?.last_flush_error && <p class="quality-error">{storage.last_flush_error}</p>}
    </div>
  );
}

type Retention = NonNullable<NonNullable<StatusAnswer["storage"]>["retention"]>;

/** How long data is kept, and what went because of it. */
function retentionRows(retention: Retention): [string, string][] {
  const { max_bytes: maxBytes, tiers = [], deleted_blocks: deleted = 0 } = retention;
  const rows = tiers.map(({ tier, max_age_seconds: seconds }): [string, string] => [
    tier === "raw" ? "profiles kept for" : `${tier.replaceAll("_", " ")} sums kept for`,
    seconds === null ? "ever" : `${formatCount(seconds / SECONDS_PER_DAY)} days`,
  ]);
  if (typeof maxBytes === "number") rows.push(["at most", formatBytes(maxBytes)]);
  if (deleted > 0) rows.push(["deleted by age or size", `${formatCount(deleted)} blocks`]);
  return rows;
}

function dropRow({ reason, count, unit, remedy }: QualityFigures["drops"][number]): [string, string] {
  const figure = unit === "" ? formatCount(count) : `${formatCount(count)} ${unit}`;
  return [reason.replaceAll("_", " "), remedy === undefined ? figure : `${figure} · ${remedy}`];
}

function agentRow({ host = "?", version = "", is_stale: isStale, last_seen_ms: seen }: AgentEntry): [string, string] {
  if (!isStale) return [host, version];
  return [host, seen === undefined ? "silent" : `silent since ${clock(seen, { date: true })}`];
}

function Facts({ title, rows, none = "" }: { title: string; rows: [string, string][]; none?: string }) {
  return (
    <section>
      <h2>{title}</h2>
      {rows.length === 0 && <p class="muted">{none}</p>}
      <dl>
        {rows.map(([name, value]) => (
          <div key={`${name} ${value}`}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
