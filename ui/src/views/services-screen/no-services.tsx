// Why there is no service: nothing sends, nothing may, or nothing has this type in this range. Each with what to do.

import { isRelative } from "../../model/time-range.ts";
import { Hint } from "../hint.tsx";
import { status, update, view } from "../store.ts";

export function NoServicesState({ hint }: { hint: string | undefined }) {
  const { from, to, type, query } = view.value;
  const answer = status.value.data;
  const agents = answer?.agents ?? [];
  const hasAgent = agents.some((agent) => !agent.is_stale);
  const hasData = (answer?.storage?.blocks ?? 0) > 0 || (answer?.storage?.head_samples ?? 0) > 0;
  const missing = agents.flatMap((agent) => agent.missing ?? []);
  return (
    <div class="state" role="status" data-testid="no-services">
      <h2>No service in this range</h2>
      {hint && <p>{hint}</p>}
      {!hasAgent && !hasData && (
        <Hint text="No agent sends to this server, and nothing was pushed." command="sudo candela up" />
      )}
      {!hasAgent && hasData && <Hint text="No agent sends at the moment." command="candela doctor --agent" />}
      {missing.map(({ what, reason }) => (
        <Hint key={`${what} ${reason}`} text={`${what} is missing on a host: ${reason}`} command="candela doctor" />
      ))}
      <div class="state-actions">
        {type !== "cpu" && (
          <button type="button" class="secondary-button" onClick={() => update({ type: "cpu" })}>
            CPU time
          </button>
        )}
        {query !== "{}" && (
          <button type="button" class="secondary-button" onClick={() => update({ query: "{}" })}>
            All services
          </button>
        )}
        {!(from === "now-7d" && isRelative(to)) && (
          <button type="button" class="secondary-button" onClick={() => update({ from: "now-7d", to: "now" })}>
            Last 7 days
          </button>
        )}
      </div>
    </div>
  );
}
