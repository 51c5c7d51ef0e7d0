// How two profiles are set against each other: the choices, and what the colours mean.

import { formatDifference, formatRelative } from "../../model/change.ts";
import { ROOT } from "../../model/flame-tree.ts";
import { formatInteger, formatValue } from "../../model/units.ts";
import { Segmented } from "../segmented.tsx";
import { LEVELS, levelToken } from "./change-colors.ts";
import { CHANGE_COLORS, changeColorsChoice, chooseChangeColors, type ChangeColors } from "../theme.ts";
import { compared, lookAt } from "./compared.ts";

const COLORS_TITLES: Record<ChangeColors, string> = { "blue-orange": "blue, orange", "red-green": "green, red" };

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

/** What stands at the end of the legend; in a file, how its look scales. */
export function ChangeLegend({ normalization }: { normalization?: string | undefined }) {
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
      {shown.chance && (
        <span
          class="legend-entry"
          title="As the total of the frame says at this place; where places are not tested, below what has not changed, as the function says everywhere."
        >
          <i class="hatch-swatch" aria-hidden="true" />
          may be chance
        </span>
      )}
      <ColorsChooser />
      <span class="muted truncated legend-rest">
        {normalization ?? (look.is_scaled ? `normalised: before × ${scale.toPrecision(3)}` : "not normalised: values as measured")}
        {unseen > 0 && ` · frames only ${other}, without width: ${formatInteger(unseen)}`}
      </span>
    </div>
  );
}

function ColorsChooser() {
  return (
    <label class="inline-field change-colors">
      <span class="visually-hidden">Colours of a change</span>
      <select
        value={changeColorsChoice.value}
        data-testid="change-colors"
        onChange={(event) => chooseChangeColors(event.currentTarget.value as ChangeColors)}
      >
        {CHANGE_COLORS.map((colors) => (
          <option key={colors} value={colors}>
            {COLORS_TITLES[colors]}
          </option>
        ))}
      </select>
    </label>
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
