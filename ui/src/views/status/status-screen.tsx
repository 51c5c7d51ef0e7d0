// How Candela itself is doing: who sends, how good it is, what was lost, where it lies, and what to do about each problem.

import { useEffect, useState } from "preact/hooks";
import type { StatusAnswer } from "../../api/types.ts";
import { qualityOf, type Quality } from "../../model/quality.ts";
import { problemsOf } from "../../model/status-figures.ts";
import { formatCount, formatSeconds, formatShare } from "../../model/units.ts";
import "../../styles/screens.css";
import { copy } from "../actions.ts";
import { Loader } from "../loader.ts";
import { Hint } from "../hint.tsx";
import { ScreenState } from "../screen-state.tsx";
import { api } from "../store.ts";
import { Agents } from "./agents.tsx";
import { loadFleet } from "./fleet.ts";
import { Fleet } from "./fleet-section.tsx";
import { Storage } from "./storage.tsx";

const REFRESH_MILLISECONDS = 5000;
const loader = new Loader<StatusAnswer>("the status");

function load(): void {
  void loader.load("", (abort) => api.status(abort));
}

export function StatusScreen() {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const look = (): void => {
      setNow(Date.now());
      if (document.visibilityState !== "visible") return;
      loadFleet();
      // An answer that takes longer than the pace is waited for.
      if (!(loader.state.peek().loading && loader.state.peek().data)) load();
    };
    look();
    const timer = setInterval(look, REFRESH_MILLISECONDS);
    return () => clearInterval(timer);
  }, []);
  const { data: answer, error, loading } = loader.state.value;
  return (
    <main class="main screen" data-testid="status-screen">
      <div class="screen-head">
        <h1>Status</h1>
        {answer && (
          <p class="muted">
            Candela {answer.version ?? "of an unknown version"}
            {answer.uptime_seconds !== undefined && ` · up for ${formatSeconds(answer.uptime_seconds)}`}
          </p>
        )}
        {answer && (
          <button type="button" class="secondary-button screen-end" onClick={() => void copy(JSON.stringify(answer, null, 2), "the status")}>
            Copy as JSON
          </button>
        )}
      </div>
      <div class="screen-body status-body" aria-busy={loading}>
        {error && answer && (
          <p class="banner" role="status">
            The server does not answer; this is what it said last.
          </p>
        )}
        {answer ? (
          <Sections answer={answer} now={now} />
        ) : (
          <ScreenState error={error} loading={loading} retry={load}>
            {null}
          </ScreenState>
        )}
      </div>
    </main>
  );
}

function Sections({ answer, now }: { answer: StatusAnswer; now: number }) {
  const quality = qualityOf(answer);
  return (
    <>
      <Problems answer={answer} />
      <Agents agents={answer.agents ?? []} now={now} />
      <Fleet now={now} />
      <Stacks quality={quality} />
      <Ledger quality={quality} />
      <Storage answer={answer} />
    </>
  );
}

function Problems({ answer }: { answer: StatusAnswer }) {
  const problems = problemsOf(answer);
  return (
    <section class="status-section" aria-labelledby="status-problems" data-testid="status-problems">
      <h2 id="status-problems">To look at</h2>
      {problems.length === 0 && <p class="muted">Nothing: all agents send, and everything can be written and read.</p>}
      {problems.map(({ text, command }) => (
        <Hint key={text} text={text} command={command} />
      ))}
    </section>
  );
}

function Stacks({ quality: { samples, userStacks, complete, problems } }: { quality: Quality }) {
  return (
    <section class="status-section" aria-labelledby="status-quality" data-testid="status-quality">
      <h2 id="status-quality">Quality of stacks</h2>
      {samples === 0 ? (
        <p class="muted">No agent has told this server how its stacks ended. Profiles that were pushed are as complete as they came.</p>
      ) : (
        <table class="wide-table">
          <thead>
            <tr>
              <th scope="col">Result</th>
              <th scope="col" class="is-number">Samples</th>
              <th scope="col" class="is-number">Share</th>
            </tr>
          </thead>
          <tbody>
            {[{ name: "complete", count: complete }, ...problems].map(({ name, count }) => (
              <tr key={name}>
                <th scope="row">{name.replaceAll("_", " ")}</th>
                <td class="is-number">{formatCount(count)}</td>
                <td class="is-number">{formatShare(count, userStacks)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function Ledger({ quality: { drops } }: { quality: Quality }) {
  return (
    <section class="status-section" aria-labelledby="status-drops" data-testid="status-drops">
      <h2 id="status-drops">Drop ledger</h2>
      {drops.length === 0 ? (
        <p class="muted">Nothing was lost, and nothing is shown with less detail than it came with.</p>
      ) : (
        <table class="wide-table">
          <thead>
            <tr>
              <th scope="col">Reason</th>
              <th scope="col" class="is-number">Count</th>
              <th scope="col">Means</th>
              <th scope="col">What helps</th>
            </tr>
          </thead>
          <tbody>
            {drops.map(({ reason, count, unit, isLoss, remedy }) => (
              <tr key={reason}>
                <th scope="row">{reason.replaceAll("_", " ")}</th>
                <td class="is-number">
                  {formatCount(count)} {unit}
                </td>
                <td class={isLoss ? "is-worrying" : "muted"}>{isLoss ? "missing" : "less detail"}</td>
                <td class="is-text">{remedy ?? "the server's log says more"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
