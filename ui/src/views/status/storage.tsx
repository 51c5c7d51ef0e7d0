// Where it lies, how long it stays, and what may come in.

import type { RetentionTier, StatusAnswer } from "../../api/types.ts";
import { formatBytes, formatCount, formatSeconds } from "../../model/units.ts";
import { clock } from "../clock.ts";

const TIER_NAMES: Record<string, string> = {
  raw: "profiles as they came",
  ten_minutes: "sums of 10 minutes",
  hourly: "sums of an hour",
};

const BYTE_LIMITS = new Set(["adhoc_size", "body_size", "ingest_burst", "ingest_rate", "label_name_length", "label_value_length", "profile_size", "string_length"]);

export function Storage({ answer }: { answer: StatusAnswer }) {
  const { storage = {}, ingest = {}, tenants = {} } = answer;
  const { retention } = storage;
  return (
    <>
      <section class="status-section" aria-labelledby="status-storage" data-testid="status-storage">
        <h2 id="status-storage">Storage and retention</h2>
        <dl class="fact-list">
          <Fact name="blocks" value={`${formatCount(storage.blocks ?? 0)} · ${formatBytes(storage.bytes ?? 0)}`} />
          <Fact
            name="not yet in a block"
            value={`${formatCount(storage.head_samples ?? 0)} samples${storage.head_bytes === undefined ? "" : ` · ${formatBytes(storage.head_bytes)}`}`}
          />
          <Fact name="log" value={formatBytes(storage.wal_bytes ?? 0)} />
          {typeof storage.oldest_ms === "number" && <Fact name="oldest" value={clock(storage.oldest_ms, { date: true })} />}
          {typeof retention?.max_bytes === "number" && <Fact name="all together at most" value={formatBytes(retention.max_bytes)} />}
          <Fact name="deleted by age or size" value={`${formatCount(retention?.deleted_blocks ?? 0)} blocks`} />
          <Fact name="last error of writing" value={storage.last_flush_error ?? "none"} isWorrying={Boolean(storage.last_flush_error)} />
        </dl>
        {retention?.tiers && <Tiers tiers={retention.tiers} />}
      </section>
      <section class="status-section" aria-labelledby="status-ingest">
        <h2 id="status-ingest">What came in since the start</h2>
        {Object.keys(ingest).length === 0 && (
          <p class="muted">
            Nothing over the network. <code>candela push FILE --service NAME</code> sends a profile.
          </p>
        )}
        <dl class="fact-list">
          {Object.entries(ingest).map(([way, { profiles = 0, samples = 0, bytes = 0 }]) => (
            <Fact
              key={way}
              name={way.replaceAll("_", " ")}
              value={`${formatCount(profiles)} profiles · ${formatCount(samples)} samples · ${formatBytes(bytes)}`}
            />
          ))}
        </dl>
      </section>
      {Object.entries(tenants).map(([tenant, { series = 0, limits = {} }]) => (
        <section key={tenant} class="status-section" data-testid="status-limits">
          <h2>Limits of {tenant}</h2>
          <dl class="fact-list">
            <Fact name="active series" value={formatCount(series)} />
            {Object.entries(limits).map(([name, limit]) => (
              <Fact key={name} name={name.replaceAll("_", " ")} value={limitText(name, limit)} />
            ))}
          </dl>
        </section>
      ))}
    </>
  );
}

function Tiers({ tiers }: { tiers: readonly RetentionTier[] }) {
  return (
    <table class="wide-table">
      <thead>
        <tr>
          <th scope="col">Kept</th>
          <th scope="col">For</th>
          <th scope="col" class="is-number">Blocks</th>
          <th scope="col" class="is-number">Size</th>
          <th scope="col" class="is-number">Samples</th>
          <th scope="col">From</th>
        </tr>
      </thead>
      <tbody>
        {tiers.map(({ tier, max_age_seconds: age, blocks = 0, bytes = 0, samples = 0, oldest_ms: oldest }) => (
          <tr key={tier}>
            <th scope="row">{TIER_NAMES[tier] ?? tier}</th>
            <td>{age === null ? "ever" : formatSeconds(age)}</td>
            <td class="is-number">{formatCount(blocks)}</td>
            <td class="is-number">{formatBytes(bytes)}</td>
            <td class="is-number">{formatCount(samples)}</td>
            <td>{typeof oldest === "number" ? clock(oldest, { date: true }) : "–"}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function limitText(name: string, limit: number): string {
  if (limit === 0) return "none";
  const text = BYTE_LIMITS.has(name) ? formatBytes(limit) : formatCount(limit);
  return name === "ingest_rate" ? `${text}/s` : text;
}

function Fact({ name, value, isWorrying = false }: { name: string; value: string; isWorrying?: boolean }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class={isWorrying ? "is-worrying" : undefined}>{value}</dd>
    </div>
  );
}
