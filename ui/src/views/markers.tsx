// Flags over the series and lines through the heatmap: what happened, where it happened.

import { useComputed } from "@preact/signals";
import "../styles/markers.css";
import { groupMarkers, type Marker, type MarkerGroup } from "../model/markers.ts";
import { clock } from "./clock.ts";
import { axis, markers, openNotes } from "./notes.ts";
import { range } from "./store.ts";

/** Flags nearer than this part of the axis are one. */
const GAP = 0.014;
const MOST_IN_TIP = 4;

/** `isBelow` draws the lines alone, where the flags are above. */
export function Markers({ isBelow = false }: { isBelow?: boolean }) {
  const groups = useComputed(() => groupMarkers(markers.value, axis.value, GAP));
  const spans = useComputed(() => markers.value.flatMap((marker) => spanOf(marker) ?? []));
  if (isBelow) {
    return (
      <div class="markers is-below" aria-hidden="true">
        {spans.value.map(({ key, style }) => (
          <span key={key} class="marker-span" style={style} />
        ))}
        {groups.value.map((group) => (
          <span key={group.markers[0].key} class={`marker-line is-${look(group)}`} style={{ left: percent(group.place) }} />
        ))}
      </div>
    );
  }
  return (
    <div class="markers" data-testid="markers" role="group" aria-label="Deploys and notes">
      {spans.value.map(({ key, style }) => (
        <span key={key} class="marker-span" style={style} />
      ))}
      {groups.value.map((group) => (
        <Flag key={group.markers[0].key} group={group} />
      ))}
    </div>
  );
}

function Flag({ group }: { group: MarkerGroup }) {
  const { place, markers: inside } = group;
  return (
    <span class={`marker is-${look(group)}`} style={{ left: percent(place) }}>
      <span class="marker-line" aria-hidden="true" />
      <button
        type="button"
        class="marker-flag"
        data-testid="marker"
        aria-haspopup="dialog"
        aria-label={inside.map(described).join("; ")}
        onClick={() => (openNotes.value = { keys: inside.map(({ key }) => key) })}
      >
        {inside.length > 1 ? inside.length : ""}
      </button>
      <span class={`marker-tip${place > 0.6 ? " is-left" : ""}`} aria-hidden="true">
        {inside.slice(0, MOST_IN_TIP).map((marker) => (
          <span key={marker.key}>
            <span class="muted">{markerTime(marker)}</span> {marker.text}
            {!marker.annotation && <span class="muted"> (seen in the data)</span>}
          </span>
        ))}
        {inside.length > MOST_IN_TIP && <span class="muted">and {inside.length - MOST_IN_TIP} more</span>}
      </span>
    </span>
  );
}

/** What stands for several is a note where they differ. */
function look({ markers: inside }: MarkerGroup): "deploy" | "config" | "note" | "derived" {
  const looks = inside.map(({ kind, annotation }) => (!annotation ? "derived" : kind === "deploy" || kind === "config" ? kind : "note"));
  return looks.every((one) => one === looks[0]) ? looks[0] : looks.includes("deploy") ? "deploy" : "note";
}

function spanOf({ key, time, end }: Marker): { key: string; style: { left: string; width: string } } | undefined {
  const { from, to } = axis.value;
  if (end === undefined || !(to > from) || time >= to || end <= from) return undefined;
  const left = Math.max(0, (time - from) / (to - from));
  const right = Math.min(1, (end - from) / (to - from));
  return { key, style: { left: percent(left), width: percent(right - left) } };
}

const percent = (part: number): string => `${(100 * part).toFixed(3)}%`;

function described(marker: Marker): string {
  return `${marker.kind} at ${markerTime(marker)}: ${marker.text}${marker.annotation ? "" : ", seen in the data"}`;
}

/** With the day where the range has several. */
export function markerTime({ time, end }: Pick<Marker, "time" | "end">): string {
  const date = range.value.to - range.value.from > 86_400e3;
  const begin = clock(time, { date, seconds: false });
  return end === undefined ? begin : `${begin} – ${clock(end, { date, seconds: false })}`;
}
