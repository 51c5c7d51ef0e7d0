// Which colour is which wait. Each entry has its share, and filters by itself.

import { computed } from "@preact/signals";
import { withFilter, type FilterKind } from "../../model/filters.ts";
import { mixOf } from "../../model/cost-parts.ts";
import { ROOT } from "../../model/flame-tree.ts";
import { parseTypeId } from "../../model/profile-type.ts";
import { formatShare, formatValue } from "../../model/units.ts";
import { ANY_REASON, isWallTime, ON_CPU, reasonMeaning, reasonPattern, reasonTitle, reasonToken } from "../../model/wait-reasons.ts";
import type { PaneChoice } from "../../state/schema.ts";
import "../../styles/reasons.css";
import { coloring } from "../coloring.ts";
import { flameTree, update, view } from "../store.ts";
import { reasonParts, reasons } from "./reason-parts.ts";

interface Entry {
  key: string;
  token: string;
  title: string;
  about: string;
  value: number;
  filter: readonly [FilterKind, string];
}

/** Table and tree have no colours, and callers and callees have those of frames. */
const WITH_PICTURE: ReadonlySet<PaneChoice> = new Set(["flame", "both"]);

export function ReasonLegend() {
  if (coloring.value !== "reason" || !WITH_PICTURE.has(view.value.panes)) return null;
  const { data, isStale, error, loading } = reasons.value;
  if (!data && error) {
    return (
      <p class="reason-legend" role="status">
        <span class="muted">What is waited for cannot be told: {error.message}</span>
      </p>
    );
  }
  if ((!data || isStale) && loading) {
    return (
      <p class="reason-legend" role="status">
        <span class="muted">Asking what is waited for …</span>
      </p>
    );
  }
  return <Legend label="Time by what is waited for" entries={reasonEntries.value} />;
}

const reasonEntries = computed((): Entry[] => {
  const parts = reasonParts.value;
  if (!parts) return [];
  const isWall = isWallTime(parseTypeId(parts.tree.header.type));
  return mixOf(parts, ROOT).map(({ name, value }) => ({
    key: name ?? "",
    token: reasonToken(name),
    title: isWall && name !== ON_CPU && name !== undefined ? `off CPU: ${reasonTitle(name)}` : reasonTitle(name),
    about: `${reasonMeaning(name)} Click: only this.`,
    value,
    // What runs, and what nobody gave a reason, has no such label.
    filter: name === undefined || name === ON_CPU ? ["tagignore", ANY_REASON] : ["tagfocus", reasonPattern(name)],
  }));
});

function Legend({ label, entries }: { label: string; entries: readonly Entry[] }) {
  const tree = flameTree.value;
  if (!tree || entries.length === 0) return null;
  const whole = tree.rootTotal;
  return (
    <ul class="reason-legend" aria-label={label} data-testid="reason-legend">
      {entries.map(({ key, token, title, about, value, filter: [kind, pattern] }) => (
        <li key={key}>
          <button
            type="button"
            class="legend-button"
            title={`${about}\n${formatValue(value, tree.header.unit)}`}
            data-testid={`legend-${key}`}
            onClick={() => update({ filters: withFilter(view.peek().filters, kind, pattern), zoom: "" })}
          >
            <i class="swatch" style={{ background: `var(${token})` }} aria-hidden="true" />
            <span>{title}</span>
            <span class="muted">{formatShare(value, whole)}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
