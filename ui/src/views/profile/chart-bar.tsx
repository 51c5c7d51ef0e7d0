// Above the chart: what has a lane, which lanes are shown, how much of each, and the way back in time.

import { formatCount } from "../../model/units.ts";
import { chartView } from "../actions.ts";
import { useLabelNames } from "../group-chooser.tsx";
import { canTakeRangeBack, takeRangeBack } from "../range-choice.ts";
import { update, view } from "../store.ts";
import { foldAll, isDeep, laneCount, placedLanes, shownChart, shownLanes } from "./chart-answer.ts";

export function ChartBar() {
  const data = shownChart.value;
  if (!data) return null;
  const all = laneCount(data.lanes);
  const shown = laneCount(shownLanes.value);
  const isFolded = placedLanes.value.every(({ isOpen }) => !isOpen);
  const hasHidden = isDeep.value || placedLanes.value.some(({ lane, isOpen, depth }) => isOpen && depth < lane.rows.length);
  return (
    <div class="chart-bar">
      <LaneChooser />
      <input
        type="search"
        class="chart-filter"
        placeholder="Lanes by name"
        aria-label="Show lanes whose names have these words"
        data-testid="lane-filter"
        autocomplete="off"
        spellcheck={false}
        value={view.value.lanes}
        onInput={(event) => update({ lanes: event.currentTarget.value })}
      />
      <span class="muted" data-testid="chart-figures">
        {shown === all ? formatCount(all) : `${formatCount(shown)} of ${formatCount(all)}`} {all === 1 ? "lane" : "lanes"},{" "}
        {formatCount(data.header.timed)} samples
        {data.header.untimed > 0 && `; ${formatCount(data.header.untimed)} without times are not shown`}
      </span>
      <span class="chart-actions">
        {canTakeRangeBack.value && (
          <button type="button" class="link-button" data-testid="range-back" title="Backspace" onClick={takeRangeBack}>
            the range before
          </button>
        )}
        <button type="button" class="link-button" onClick={() => foldAll(!isFolded)}>
          {isFolded ? "unfold all" : "fold all"}
        </button>
        {hasHidden && (
          <button type="button" class="link-button" aria-pressed={isDeep.value} onClick={() => (isDeep.value = !isDeep.peek())}>
            {isDeep.value ? "fewer rows" : "all rows"}
          </button>
        )}
        <button type="button" class="icon-button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => chartView.current?.zoom(1)}>
          +
        </button>
        <button type="button" class="icon-button" aria-label="Zoom out" title="Zoom out (−)" onClick={() => chartView.current?.zoom(-1)}>
          −
        </button>
      </span>
    </div>
  );
}

function LaneChooser() {
  const { laneBy } = view.value;
  const { names } = useLabelNames();
  // What the address asks for is a choice before the server has listed it.
  const choices = [...new Set(["", ...(laneBy === "" ? [] : [laneBy]), ...(names ?? [])])];
  return (
    <label class="inline-field">
      <span>A lane for each</span>
      <select
        aria-label="What has a lane each"
        data-testid="lane-by"
        value={laneBy}
        onChange={(event) => update({ laneBy: event.currentTarget.value })}
      >
        {choices.map((label) => (
          <option key={label} value={label}>
            {label === "" ? "thread" : label}
          </option>
        ))}
      </select>
    </label>
  );
}
