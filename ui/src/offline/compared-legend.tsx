// How two profiles are set against each other: the choices, and what the colours mean.

import { formatDifference, formatRelative } from "../model/change.ts";
import { ROOT } from "../model/flame-tree.ts";
import { formatInteger, formatValue } from "../model/units.ts";
import { Segmented } from "../views/segmented.tsx";
import { LEVELS, levelToken } from "./change-colors.ts";
import { compared, lookAt } from "./compared.ts";

export function LookChooser() {
  const shown = compared.value;
  if (!shown) return null;
  const { widths, is_scaled } = shown.look;
  return (
    <>
      <span class="inline-field">
        <span>Compare</span>
        <Segmented
          label="Compare"
          value={is_scaled ? "shares" : "values"}
          options={[
            ["values", "Values"],
            ["shares", "Shares"],
          ]}
          onChange={(value) => lookAt({ is_scaled: value === "shares" })}
        />
      </span>
      <span class="inline-field">
        <span>Widths</span>
        <Segmented
          label="Widths"
          value={widths}
          options={[
            ["before", "Before"],
            ["after", "After"],
          ]}
          onChange={(value) => lookAt({ widths: value })}
        />
      </span>
    </>
  );
}

export function ChangeLegend() {
  const shown = compared.value;
  if (!shown || shown.tree.isEmpty) return null;
  const { look, largestChange, scale, unseen, tree } = shown;
  const { unit } = tree.header;
  const other = look.widths === "before" ? "after" : "before";
  return (
    <div class="change-legend" data-testid="change-legend">
      <span class="legend-entry" title="Of a function’s own (self) value, at this place.">
        <span class="muted">own value</span>
        <span>shrank {formatDifference(largestChange, 0, unit)}</span>
        <span class="change-scale" aria-hidden="true">
          {LEVELS.map((level) => (
            <i key={level} style={{ background: `var(${levelToken(level)})` }} />
          ))}
        </span>
        <span>{formatDifference(0, largestChange, unit)} grew</span>
      </span>
      <span class="legend-entry">
        <i class="edge-swatch" style={{ borderColor: "var(--only-after)" }} aria-hidden="true" />
        only after
      </span>
      <span class="legend-entry">
        <i class="edge-swatch" style={{ borderColor: "var(--only-before)" }} aria-hidden="true" />
        only before
      </span>
      <span class="muted truncated legend-rest">
        {look.is_scaled ? `normalised: before × ${scale.toPrecision(3)}` : "not normalised: values as measured"}
        {unseen > 0 && ` · frames only ${other}, without width: ${formatInteger(unseen)}`}
      </span>
    </div>
  );
}

/** Both totals as measured. */
export function BothTotals() {
  const shown = compared.value;
  if (!shown || shown.tree.isEmpty) return null;
  const { unit } = shown.tree.header;
  const [was, is] = [shown.before.total[ROOT] / shown.scale, shown.after.total[ROOT]];
  return (
    <span class="muted truncated header-rest" data-testid="whole">
      {formatValue(was, unit)} → {formatValue(is, unit)}, {formatDifference(was, is, unit)} ({formatRelative(was, is)})
    </span>
  );
}
