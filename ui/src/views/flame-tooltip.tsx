// Details at the pointer, in the frame after it moved: no delay, no fade.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { NONE, type FlameTree } from "../model/flame-tree.ts";
import { formatShare, formatValue } from "../model/units.ts";
import { hoveredNode, pointer, zoomedNode } from "./highlight.ts";
import { flameTree } from "./store.ts";
import { shownTotal, wholeTotal } from "./whole.ts";

const OFFSET = 14;
const MARGIN = 8;

interface FlameTooltipProps {
  /** The table below the name. */
  values?: ((tree: FlameTree, node: number) => ComponentChildren) | undefined;
}

export function FlameTooltip({ values = tooltipCosts }: FlameTooltipProps) {
  const box = useRef<HTMLDivElement>(null);
  const tree = flameTree.value;
  const node = hoveredNode.value;
  const { x, y } = pointer.value;

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const left = x + OFFSET + element.offsetWidth > innerWidth - MARGIN ? x - OFFSET - element.offsetWidth : x + OFFSET;
    const top =
      y + OFFSET + element.offsetHeight > innerHeight - MARGIN ? y - OFFSET - element.offsetHeight : y + OFFSET;
    element.style.transform = `translate(${Math.max(MARGIN, left)}px, ${Math.max(MARGIN, top)}px)`;
  });

  if (!tree || node === NONE || node >= tree.length) return null;
  const frame = tree.frames.get(tree.frame[node]);
  const location = frame.file === "" ? "" : `${frame.file}${frame.line > 0 ? `:${frame.line}` : ""}`;
  return (
    <div class="tooltip" ref={box} role="tooltip">
      <p class="tooltip-name">{frame.name}</p>
      {(location !== "" || frame.mapping !== "") && (
        <p class="tooltip-place">
          {location !== "" && <span>{location}</span>}
          {frame.mapping !== "" && <span>{frame.mapping}</span>}
          {frame.kind !== "" && <span class="kind">{frame.kind}</span>}
        </p>
      )}
      {values(tree, node)}
    </div>
  );
}

/** Cost and shares of a node. */
export function tooltipCosts(tree: FlameTree, node: number) {
  const { unit } = tree.header;
  const whole = wholeTotal.value ?? tree.rootTotal;
  const shown = shownTotal.value;
  const inView = tree.total[zoomedNode.value] ?? tree.rootTotal;
  return (
    <table class="tooltip-values">
      <thead>
        <tr>
          <th>Cost</th>
          <th>{unitTitle(unit)}</th>
          <th>of all</th>
          {shown !== undefined && <th>of shown</th>}
          <th>of view</th>
        </tr>
      </thead>
      <tbody>
        {(
          [
            ["Total", tree.total[node]],
            ["Self", tree.self[node]],
          ] as const
        ).map(([label, value]) => (
          <tr key={label}>
            <th>{label}</th>
            <td>{formatValue(value, unit)}</td>
            <td>{formatShare(value, whole)}</td>
            {shown !== undefined && <td>{formatShare(value, shown)}</td>}
            <td>{formatShare(value, inView)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function unitTitle(unit: string): string {
  return ({ nanoseconds: "time", bytes: "size" } as Record<string, string>)[unit] ?? unit;
}
