// Who spends it: every service with its cost, its share, its shape over the range, and what changed against the range before.

import { useState } from "preact/hooks";
import { formatCost, profiledSeconds, type Pace } from "../model/cost.ts";
import { filterServices, mergedSparkline, paces, sumOfTotals, type ServiceEntry } from "../model/services.ts";
import { formatChange, formatShare } from "../model/units.ts";
import { LinkButton, NoServices } from "./empty-state.tsx";
import { Sparkline } from "./sparkline.tsx";
import { isEveryService, selectService, service, services } from "./store.ts";
import { chartTheme } from "./theme.ts";

/** Changes below this are noise of sampling for most services: shown without emphasis. */
const NOTABLE_CHANGE = 0.1;

export function Services() {
  const [filter, setFilter] = useState("");
  const answer = services.value.data;
  const entries = answer?.services ?? [];
  const whole = sumOfTotals(entries);
  const shown = filterServices(entries, filter);
  return (
    <aside class={`services${services.value.isStale ? " is-stale" : ""}`} aria-label="Services" data-testid="services-list">
      <div class="services-head">
        <h2>Services</h2>
        <span class="muted">{entries.length > 0 ? entries.length : ""}</span>
      </div>
      {entries.length > 8 && (
        <input
          class="services-filter"
          type="search"
          placeholder="Filter"
          aria-label="Filter services"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      )}
      <ul class="services-rows">
        <li>
          <button
            type="button"
            class="service-row is-all"
            aria-pressed={isEveryService.value}
            onClick={() => selectService(undefined)}
          >
            <span class="service-name">All services</span>
            <span class="service-cost">{answer && entries.length > 0 ? formatCost(whole, answer, profiledSeconds(answer)) : ""}</span>
          </button>
        </li>
        {shown.map((entry) => (
          <ServiceRow
            key={entry.service}
            entry={entry}
            rank={entries.indexOf(entry)}
            whole={whole}
            cost={answer ? formatCost(entry.total, answer, profiledSeconds(entry)) : ""}
            sparkline={answer ? mergedSparkline(entry.sparkline, answer) : []}
            pace={answer && paces(answer, entry)}
          />
        ))}
      </ul>
      {entries.length === 0 && <NoServices />}
      {entries.length > 0 && shown.length === 0 && (
        <p class="services-empty muted" role="status">
          No service matches “{filter}”. <LinkButton label="clear the filter" act={() => setFilter("")} />
        </p>
      )}
    </aside>
  );
}

interface ServiceRowProps {
  entry: ServiceEntry;
  rank: number;
  whole: number;
  cost: string;
  sparkline: readonly number[];
  pace: Pace | undefined;
}

function ServiceRow({ entry, rank, whole, cost, sparkline, pace }: ServiceRowProps) {
  const theme = chartTheme.value;
  const color = theme.layers[rank] ?? theme.other;
  return (
    <li>
      <button
        type="button"
        class="service-row"
        data-testid="service-row"
        data-service={entry.service}
        aria-pressed={service.value === entry.service}
        title={entry.service}
        onClick={() => selectService(service.value === entry.service ? undefined : entry.service)}
      >
        <span class="service-name">
          <span class="swatch" style={{ background: color }} aria-hidden="true" />
          <span class="truncated">{entry.service}</span>
        </span>
        <span class="service-cost">{cost}</span>
        <Sparkline values={sparkline} color={color} />
        <span class="service-share">
          {formatShare(entry.total, whole)}
          {pace && <Change {...pace} />}
        </span>
        <span class="share-bar" aria-hidden="true">
          <span style={{ width: `${whole > 0 ? (100 * entry.total) / whole : 0}%`, background: color }} />
        </span>
      </button>
    </li>
  );
}

function Change({ now, before }: Pace) {
  const ratio = before > 0 ? now / before - 1 : now > 0 ? Number.POSITIVE_INFINITY : 0;
  const direction = ratio > NOTABLE_CHANGE ? " is-up" : ratio < -NOTABLE_CHANGE ? " is-down" : "";
  return (
    <span class={`change${direction}`} title="Cost per time, against the period before of the same length">
      {formatChange(now, before)}
    </span>
  );
}
