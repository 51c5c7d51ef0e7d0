// Who spends it, in full: every service in one table that can be searched, ordered, and walked with the keyboard.

import { useState } from "preact/hooks";
import { parseTypeId, typeTitle } from "../../model/profile-type.ts";
import { growth, orderedServices, rowOfAll, serviceRows, type ServiceColumn, type ServiceRow } from "../../model/service-table.ts";
import { formatChange, formatShare, formatValue } from "../../model/units.ts";
import "../../styles/screens.css";
import { LinkButton, Notices } from "../empty-state.tsx";
import { NarrowedLine } from "../narrowed-line.tsx";
import { ScreenState } from "../screen-state.tsx";
import { Sparkline } from "../sparkline.tsx";
import { currentType, isEveryService, selectService, service, services, view } from "../store.ts";
import { chartTheme } from "../theme.ts";
import { NoServicesState } from "./no-services.tsx";

const COLUMNS: readonly (readonly [ServiceColumn, string])[] = [
  ["service", "Service"],
  ["cost", "Cost"],
  ["share", "Share"],
  ["change", "Against before"],
];

/** Changes below this are noise of sampling for most services: shown without emphasis. */
const NOTABLE_CHANGE = 0.1;

export function ServicesScreen() {
  const [text, setText] = useState("");
  const [order, setOrder] = useState<{ column: ServiceColumn; descending: boolean }>({ column: "cost", descending: true });
  const { data: answer, error, isStale, loading } = services.value;
  const rows = answer ? serviceRows(answer) : [];
  const shown = answer ? orderedServices(answer, rows, text, order.column, order.descending) : [];
  const choose = (column: ServiceColumn): void =>
    setOrder({ column, descending: order.column === column ? !order.descending : column !== "service" });
  return (
    <main class="main screen" data-testid="services-screen">
      <Notices />
      <div class="screen-head">
        <h1>Services</h1>
        <p class="muted">
          {typeTitle(currentType.value ?? parseTypeId(view.value.type))}
          {rows.length > 0 && ` · ${rows.length} ${rows.length === 1 ? "service" : "services"}`}
        </p>
        <NarrowedLine />
        <input
          class="screen-search"
          type="search"
          placeholder="Search services"
          aria-label="Search services"
          data-testid="services-search"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </div>
      <div class={`screen-body${isStale ? " is-stale-body" : ""}`} role="presentation" aria-busy={loading} onKeyDown={walkRows}>
        {answer && rows.length > 0 ? (
          <table class="wide-table services-table">
            <thead>
              <tr>
                {COLUMNS.map(([column, title]) => (
                  <th
                    key={column}
                    scope="col"
                    class={`is-${column}`}
                    title={column === "change" ? "Cost per time, against the period before of the same length" : undefined}
                    aria-sort={order.column === column ? (order.descending ? "descending" : "ascending") : "none"}
                  >
                    <button type="button" onClick={() => choose(column)} data-testid={`services-by-${column}`}>
                      {title}
                      <span aria-hidden="true">{order.column === column ? (order.descending ? " ↓" : " ↑") : ""}</span>
                    </button>
                  </th>
                ))}
                <th scope="col" class="is-shape">
                  Over the range
                </th>
              </tr>
            </thead>
            <tbody>
              <AllServices all={rowOfAll(answer, rows)} />
              {shown.map((row) => (
                <Row key={row.service} row={row} value={formatValue(row.total, answer.unit)} />
              ))}
            </tbody>
          </table>
        ) : (
          <ScreenState error={error} loading={loading && !answer}>
            <NoServicesState hint={answer?.hint} />
          </ScreenState>
        )}
        {rows.length > 0 && shown.length === 0 && (
          <p class="screen-note muted" role="status">
            No service matches “{text}”. <LinkButton label="clear the search" act={() => setText("")} />
          </p>
        )}
        {rows.length > 0 && rows.every(({ pace }) => pace === undefined) && (
          <p class="screen-note muted">
            No change is shown: the period before this one has no data, or only a part of it. A shorter range may have one.
          </p>
        )}
      </div>
    </main>
  );
}

function look(chosen: string | undefined): void {
  selectService(chosen, { screen: "profile" });
}

function AllServices({ all }: { all: Pick<ServiceRow, "cost" | "pace" | "sparkline"> }) {
  return (
    <tr class="is-all" onClick={() => look(undefined)} aria-current={isEveryService.value ? "true" : undefined}>
      <th scope="row" class="is-service">
        <button type="button" class="row-button" data-testid="services-all">
          All services
        </button>
      </th>
      <td class="is-cost">{all.cost}</td>
      <td class="is-share">
        <span class="wide-share">{formatShare(1, 1)}</span>
      </td>
      <td class="is-change">
        <Change row={all} />
      </td>
      <td class="is-shape">
        <Sparkline values={all.sparkline} color={chartTheme.value.other} />
      </td>
    </tr>
  );
}

function Row({ row, value }: { row: ServiceRow; value: string }) {
  const theme = chartTheme.value;
  const color = theme.layers[row.rank] ?? theme.other;
  return (
    <tr onClick={() => look(row.service)} aria-current={service.value === row.service ? "true" : undefined} data-testid="services-row">
      <th scope="row" class="is-service" aria-label={row.service}>
        <button type="button" class="row-button" title={`Open the profile of ${row.service}`}>
          <span class="swatch" style={{ background: color }} aria-hidden="true" />
          <span class="truncated">{row.service}</span>
        </button>
      </th>
      <td class="is-cost" title={value}>
        {row.cost}
      </td>
      <td class="is-share">
        <span class="wide-share">{formatShare(row.share, 1)}</span>
        <span class="wide-bar" aria-hidden="true">
          <span style={{ width: `${100 * row.share}%`, background: color }} />
        </span>
      </td>
      <td class="is-change">
        <Change row={row} />
      </td>
      <td class="is-shape">
        <Sparkline values={row.sparkline} color={color} />
      </td>
    </tr>
  );
}

function Change({ row }: { row: Pick<ServiceRow, "pace"> }) {
  const ratio = growth(row);
  if (ratio === undefined || row.pace === undefined) return <span class="muted">–</span>;
  const isNotable = Math.abs(ratio) > NOTABLE_CHANGE;
  const direction = ratio > 0 ? "up" : "down";
  return (
    <span
      class={isNotable ? `change is-${direction}` : "muted"}
      title="Cost per time, against the period before of the same length"
    >
      {isNotable && <span aria-hidden="true">{ratio > 0 ? "▲ " : "▼ "}</span>}
      {formatChange(row.pace.now, row.pace.before)}
    </span>
  );
}

/** Up and down go from row to row; Tab stays for everything else. */
function walkRows(event: KeyboardEvent): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const at = event.target instanceof HTMLElement ? event.target.closest("tr") : null;
  if (step === undefined || !at || !(event.currentTarget instanceof HTMLElement)) return;
  const buttons = [...event.currentTarget.querySelectorAll<HTMLButtonElement>(".row-button")];
  const place = buttons.findIndex((button) => at.contains(button));
  const next = buttons[place === -1 ? 0 : Math.max(0, Math.min(buttons.length - 1, place + step))];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
