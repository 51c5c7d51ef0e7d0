// One line at the bottom: everything about the frame at hand, without having to hover still, and how good the data is.

import type { Screen } from "../state/schema.ts";
import { formatCount } from "../model/units.ts";
import { comparedNode } from "./compare/compared-node.tsx";
import type { NodeDescription } from "./flame-pane.tsx";
import { FrameStatus } from "./frame-status.tsx";
import { reasonDescription } from "./profile/reason-description.tsx";
import { Quality } from "./quality.tsx";
import { QualityBar } from "./quality-bar.tsx";
import { flameTree, isStale, loadAllNodes, lookedAtFile, view } from "./store.ts";

/** The screens on which something can be pointed at, with what their pictures tell of it. */
const DESCRIPTIONS: Partial<Record<Screen, NodeDescription>> = { profile: reasonDescription, compare: comparedNode };

export function StatusBar() {
  const description = DESCRIPTIONS[view.value.screen];
  return (
    <footer class={`status-bar${isStale.value ? " is-stale" : ""}`}>
      {description ? <FrameStatus figures={description.figures} /> : <div class="frame-status" />}
      {description && <Pruned />}
      <QualityBar />
      {!lookedAtFile.value && <Quality />}
    </footer>
  );
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
      {formatCount(pruned)} folded · show all
    </button>
  );
}
