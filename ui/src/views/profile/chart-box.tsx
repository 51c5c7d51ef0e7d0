// What is told of a box: at the pointer, and to a screen reader.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { BoxPlace } from "../../engine/chart-view.ts";
import { formatLength } from "../../model/time-ticks.ts";
import { formatCount, formatValue } from "../../model/units.ts";
import { clock } from "../clock.ts";
import { shownChart } from "./chart-answer.ts";

const OFFSET = 14;
const MARGIN = 8;
export const boxRowId = "chart-box";

interface BoxFacts {
  name: string;
  place: string;
  mapping: string;
  kind: string;
  lane: string;
  begins: string;
  length: string;
  cost: string;
  samples: string;
}

function factsOf({ placed, depth, box }: BoxPlace): BoxFacts | undefined {
  const data = shownChart.value;
  const row = placed.lane.rows[depth];
  if (!data || !row || box >= row.start.length || row.node[box] >= data.tree.length) return undefined;
  const frame = data.tree.frames.get(data.tree.frame[row.node[box]]);
  const samples = row.samples[box];
  return {
    name: frame.name,
    place: frame.file === "" ? "" : `${frame.file}${frame.line > 0 ? `:${frame.line}` : ""}`,
    mapping: frame.mapping,
    kind: frame.kind,
    lane: placed.lane.title,
    begins: clock(data.header.from + row.start[box], { milliseconds: true }),
    length: formatLength(row.end[box] - row.start[box]),
    cost: formatValue(row.value[box], data.header.unit),
    samples: `${formatCount(samples)} ${samples === 1 ? "sample" : "samples"}`,
  };
}

export function BoxTooltip({ place, at }: { place: BoxPlace | undefined; at: { x: number; y: number } }) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const tooltip = element.current;
    if (!tooltip) return;
    const { offsetWidth: width, offsetHeight: height } = tooltip;
    const left = at.x + OFFSET + width > innerWidth - MARGIN ? at.x - OFFSET - width : at.x + OFFSET;
    const top = at.y + OFFSET + height > innerHeight - MARGIN ? at.y - OFFSET - height : at.y + OFFSET;
    tooltip.style.transform = `translate(${Math.max(MARGIN, left)}px, ${Math.max(MARGIN, top)}px)`;
  });
  const facts = place && factsOf(place);
  if (!facts) return null;
  return (
    <div class="tooltip" ref={element} role="tooltip" data-testid="chart-tooltip">
      <p class="tooltip-name">{facts.name}</p>
      {(facts.place !== "" || facts.mapping !== "") && (
        <p class="tooltip-place">
          {facts.place !== "" && <span>{facts.place}</span>}
          {facts.mapping !== "" && <span>{facts.mapping}</span>}
          {facts.kind !== "" && <span class="kind">{facts.kind}</span>}
        </p>
      )}
      <table class="tooltip-values">
        <tbody>
          {(
            [
              ["Lane", facts.lane],
              ["From", facts.begins],
              ["For", facts.length],
              ["Cost", `${facts.cost}, ${facts.samples}`],
            ] as const
          ).map(([title, value]) => (
            <tr key={title}>
              <th>{title}</th>
              <td>{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The selected box as a row of the grid: what a screen reader reads while the canvas shows pixels. */
export function BoxMirror({ place }: { place: BoxPlace | undefined }) {
  const facts = place && factsOf(place);
  if (!place || !facts) return null;
  return (
    <div class="visually-hidden" role="rowgroup">
      <div role="row" id={boxRowId} aria-level={place.depth + 1} aria-selected="true" data-testid="chart-selected">
        {[facts.name, facts.lane, `from ${facts.begins}`, `for ${facts.length}`, facts.cost, facts.samples].map((fact) => (
          <span role="gridcell" key={fact}>
            {fact}
          </span>
        ))}
      </div>
    </div>
  );
}
