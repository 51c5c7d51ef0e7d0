// One line about the frame at hand: where it is and what it costs, without having to hover still.

import { ROOT, type FlameTree } from "../model/flame-tree.ts";
import { formatShare, formatValue } from "../model/units.ts";
import { describedNode, zoomedNode } from "./highlight.ts";
import { flameTree } from "./store.ts";
import { shownTotal, wholeTotal } from "./whole.ts";

interface FrameStatusProps {
  figures?: ((tree: FlameTree, node: number) => string[]) | undefined;
}

export function FrameStatus({ figures = statusCosts }: FrameStatusProps) {
  const tree = flameTree.value;
  const node = describedNode.value;
  if (!tree || tree.isEmpty || node >= tree.length) return <div class="frame-status" data-testid="flamegraph-status" />;
  const frame = tree.frames.get(tree.frame[node]);
  const place = [
    frame.file === "" ? "" : `${frame.file}${frame.line > 0 ? `:${frame.line}` : ""}`,
    frame.mapping,
  ].filter((part) => part !== "");
  return (
    <div class="frame-status" data-testid="flamegraph-status">
      <strong class="truncated">{frame.name}</strong>
      {place.length > 0 && <span class="muted truncated frame-place">{place.join(" · ")}</span>}
      <span class="frame-numbers">
        {figures(tree, node).map((figure) => (
          <span key={figure}>{figure}</span>
        ))}
      </span>
      {node === ROOT && <span class="muted frame-hint">Click a box to zoom in, right click for more</span>}
    </div>
  );
}

export function statusCosts(tree: FlameTree, node: number): string[] {
  const { unit } = tree.header;
  const zoomed = zoomedNode.value;
  const whole = wholeTotal.value;
  return [
    `self ${formatValue(tree.self[node], unit)}`,
    `total ${formatValue(tree.total[node], unit)}`,
    ...(whole === undefined ? [] : [`${formatShare(tree.total[node], whole)} of all`]),
    ...(shownTotal.value === undefined ? [] : [`${formatShare(tree.total[node], tree.rootTotal)} of what is shown`]),
    ...(zoomed === ROOT ? [] : [`${formatShare(tree.total[node], tree.total[zoomed])} of view`]),
  ];
}
