// One line at the bottom: everything about the frame at hand, without having to hover still, and how good the data is.

import { ROOT, type FlameTree } from "../model/flame-tree.ts";
import { formatCount, formatShare, formatValue } from "../model/units.ts";
import { describedNode, zoomedNode } from "./highlight.ts";
import { Quality } from "./quality.tsx";
import { flameTree, isStale, loadAllNodes } from "./store.ts";

export function StatusBar() {
  return (
    <footer class={`status-bar${isStale.value ? " is-stale" : ""}`}>
      <FrameStatus />
      <Pruned />
      <Quality />
    </footer>
  );
}

interface FrameStatusProps {
  figures?: ((tree: FlameTree, node: number) => string[]) | undefined;
}

export function FrameStatus({ figures = costs }: FrameStatusProps) {
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
    </div>
  );
}

function costs(tree: FlameTree, node: number): string[] {
  const { unit } = tree.header;
  const zoomed = zoomedNode.value;
  return [
    `self ${formatValue(tree.self[node], unit)}`,
    `total ${formatValue(tree.total[node], unit)}`,
    `${formatShare(tree.total[node], tree.rootTotal)} of all`,
    ...(zoomed === ROOT ? [] : [`${formatShare(tree.total[node], tree.total[zoomed])} of view`]),
  ];
}

function Pruned() {
  const pruned = flameTree.value?.header.pruned ?? 0;
  if (pruned === 0) return null;
  return (
    <button
      type="button"
      class="link-button"
      title="Small nodes are folded into “other” to keep the answer small; the totals hold them."
      onClick={loadAllNodes}
    >
      {formatCount(pruned)} small nodes folded · show all
    </button>
  );
}
