// The fleet: which document is applied and by whom, what each node makes of it, what was applied before.

import type { VersionEntry } from "../../model/fleet.ts";
import { ago } from "../../model/status-figures.ts";
import "../../styles/fleet.css";
import { clock } from "../clock.ts";
import { refusal } from "../notes.ts";
import { draft, edit, fleet, mayAdminister, openChange, openError, rollBack, takeSnapshot, whyNot } from "./fleet.ts";
import { DocumentDialog } from "./document-dialog.tsx";
import { FleetNodes } from "./fleet-nodes.tsx";
import { SnapshotResults } from "./snapshot-results.tsx";

export function Fleet({ now }: { now: number }) {
  const { data, error } = fleet.value;
  return (
    <section class="status-section" aria-labelledby="status-fleet" data-testid="status-fleet">
      <div class="fleet-head">
        <h2 id="status-fleet">Fleet</h2>
        {data && (
          <>
            <p class="muted" data-testid="fleet-version">
              <Applied entry={data.versions[0]} now={now} />
            </p>
            <button type="button" class="secondary-button" data-testid="fleet-edit" onClick={() => void edit()}>
              {draft.value ? "Go on editing…" : mayAdminister.value ? "Edit…" : "Show…"}
            </button>
            {mayAdminister.value && data.nodes.nodes.length > 0 && (
              <button type="button" class="secondary-button" data-testid="fleet-snapshot" onClick={takeSnapshot}>
                Snapshot of all nodes
              </button>
            )}
          </>
        )}
      </div>
      {error && !data && <p role="alert">{refusal(error)}</p>}
      {openError.value && <p role="alert">{openError.value}</p>}
      {data && (
        <>
          {whyNot.value && <p class="muted">{whyNot.value}</p>}
          <SnapshotResults />
          <FleetNodes answer={data.nodes} now={now} />
          <History versions={data.versions} />
        </>
      )}
      {openChange.value && <DocumentDialog />}
    </section>
  );
}

function Applied({ entry, now }: { entry: VersionEntry | undefined; now: number }) {
  if (!entry) return <>No document is applied yet: it says which daemons run on every node.</>;
  const { version, author, time, rolled_back_to: old } = entry;
  return (
    <>
      Version {version}
      {old !== null && `, which is version ${old} once more`}, applied by {author} {time !== null && <span title={clock(time, { date: true })}>{ago(time, now)}</span>}
    </>
  );
}

function History({ versions }: { versions: readonly VersionEntry[] }) {
  const [current] = versions;
  if (!current) return null;
  return (
    <details data-testid="fleet-history">
      <summary>History</summary>
      <ul class="fleet-rows">
        {versions.map(({ version, author, time, rolled_back_to: old }) => (
          <li key={version}>
            <strong>
              Version {version}
              {old !== null && `, ${old} once more`}
            </strong>
            <span>{author}</span>
            <span>{time !== null && clock(time, { date: true })}</span>
            {version === current.version ? (
              <span>is applied</span>
            ) : (
              <button type="button" class="link-button" aria-label={`Roll back to version ${version}`} onClick={() => void rollBack(version)}>
                Roll back…
              </button>
            )}
          </li>
        ))}
      </ul>
    </details>
  );
}
