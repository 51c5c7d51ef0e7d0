// What agents and server count since they started: stacks that lack callers, and what was dropped. Of all that was sampled, not of the
// selection alone, and said to be.

import { asSentence } from "../model/sentence.ts";
import { qualityOf, type Loss, type Quality } from "../model/quality.ts";
import { formatCount, formatShare } from "../model/units.ts";
import { FollowedLink } from "./followed-link.tsx";
import { Hint } from "./hint.tsx";
import { QualityEntry } from "./quality-entry.tsx";
import { status } from "./store.ts";

const WORRYING_SHARE = 0.05;
const LISTED_CAUSES = 4;
const LISTED_LOSSES = 8;
const SCOPE = "Of all agents, since the server started";

export function SinceStart() {
  const { data: answer, error } = status.value;
  if (!answer) return error ? <Unknown why={error.message} /> : null;
  const quality = qualityOf(answer);
  return (
    <span class="quality-since" role="group" aria-label={SCOPE} title={SCOPE}>
      <span class="muted quality-scope" aria-hidden="true">
        <span class="quality-who">all agents, </span>since start:
      </span>
      <Truncated {...quality} />
      {answer.drops ? <Dropped {...quality} /> : <Unknown why="it keeps its ledger from who asks about single tenants" />}
    </span>
  );
}

function Truncated({ userStacks, complete, problems, drops }: Quality) {
  if (userStacks === 0) return null;
  // What cuts stacks costs tables or samples their detail; what is missing altogether stands beside it.
  const helping = drops.filter(({ remedy, unit, isLoss }) => remedy !== undefined && !isLoss && (unit === "tables" || unit === "samples"));
  return (
    <QualityEntry
      title="Stacks that lack callers"
      label={`${formatShare(userStacks - complete, userStacks)} truncated`}
      isWorrying={userStacks - complete > userStacks * WORRYING_SHARE}
      testId="quality-truncated"
    >
      <p>Of all stacks that agents have walked since the server started, these ended before the first function:</p>
      <ul>
        {problems.map(({ name, count }) => (
          <li key={name}>
            {name.replaceAll("_", " ")} · {formatShare(count, userStacks)}
          </li>
        ))}
      </ul>
      {helping.slice(0, LISTED_CAUSES).map(({ reason, remedy }) => (
        <p key={reason}>
          {reason.replaceAll("_", " ")}: {remedy}
        </p>
      ))}
      <Hint text="Why frames of one process are missing:" command="candela doctor -p PID" />
    </QualityEntry>
  );
}

/** That nobody tells is not that nothing was lost. */
function Unknown({ why }: { why: string }) {
  return (
    <QualityEntry title="What was dropped" label="drops unknown" testId="quality-dropped">
      <p>The server does not tell what was lost. {asSentence(why)}</p>
    </QualityEntry>
  );
}

function Dropped({ losses, drops }: Quality) {
  const lost = drops.filter(({ isLoss }) => isLoss);
  const coarse = drops.length - lost.length;
  return (
    <QualityEntry
      title="What was dropped"
      label={losses.length === 0 ? "nothing dropped" : `${losses.map(amountOf).join(", ")} dropped`}
      isWorrying={losses.some(({ isWorrying }) => isWorrying)}
      testId="quality-dropped"
    >
      <p>
        {lost.length === 0
          ? "Since the server started nothing was lost: what agents sampled and others sent is here."
          : "Since the server started, all agents and the server itself have lost:"}
      </p>
      {lost.slice(0, LISTED_LOSSES).map((drop) => (
        <p key={drop.reason}>
          {amountOf(drop)}: {drop.reason.replaceAll("_", " ")}. {asSentence(drop.remedy ?? "the server’s log says more")}
        </p>
      ))}
      <p>
        {lost.length > LISTED_LOSSES && `${lost.length - LISTED_LOSSES} more reasons. `}
        {coarse > 0 && `${coarse} ${coarse === 1 ? "reason costs" : "reasons cost"} detail only. `}
        <FollowedLink class="link-button" patch={{ screen: "status" }} testId="quality-ledger">
          The whole ledger, on Status
        </FollowedLink>
      </p>
    </QualityEntry>
  );
}

function amountOf({ count, unit }: Pick<Loss, "count" | "unit">): string {
  return unit === "" ? formatCount(count) : `${formatCount(count)} ${unit}`;
}
