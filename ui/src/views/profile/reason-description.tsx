// What the picture tells of a box beside its cost: what threads wait for there.

import { computed } from "@preact/signals";
import type { NodeColors } from "../../engine/colors.ts";
import { leadingParts, mixOf, type PartShare } from "../../model/cost-parts.ts";
import { NONE, type FlameTree } from "../../model/flame-tree.ts";
import { formatShare, formatValue } from "../../model/units.ts";
import { reasonTitle, reasonToken } from "../../model/wait-reasons.ts";
import type { NodeDescription } from "../flame-pane.tsx";
import { tooltipCosts } from "../flame-tooltip.tsx";
import { statusCosts } from "../frame-status.tsx";
import { flameTheme, tokenReader } from "../theme.ts";
import { reasonParts } from "./reason-parts.ts";

/** The fill is what a box mostly waits for; its foot, what else does, from a tenth on. */
const reasonColors = computed<NodeColors | undefined>(() => {
  const parts = reasonParts.value;
  if (!parts) return undefined;
  // Changes whenever tokens do.
  const theme = flameTheme.value;
  const { color } = tokenReader();
  const fills = parts.names.map((name) => color(reasonToken(name)));
  const unknown = color(reasonToken(undefined));
  const { frames, frame } = parts.tree;
  return {
    fill: (node) => {
      if (frames.isOther(frame[node])) return theme.other;
      const { first } = leadingParts(parts, node);
      return first === NONE ? unknown : fills[first];
    },
    edge: (node) => {
      const { second } = leadingParts(parts, node);
      return second === NONE ? undefined : fills[second];
    },
  };
});

export const reasonDescription: NodeDescription = {
  colors: reasonColors,
  values: (tree, node) => (
    <>
      {tooltipCosts(tree, node)}
      <Mix tree={tree} node={node} />
    </>
  ),
  figures: (tree, node) => [
    ...statusCosts(tree, node),
    ...mixAt(tree, node)
      .slice(0, 2)
      .map(({ name, value }) => `${reasonTitle(name)} ${formatShare(value, tree.total[node])}`),
  ],
};

/** Nothing of a folded box: each answer has folded others. */
function mixAt(tree: FlameTree, node: number): PartShare[] {
  const parts = reasonParts.value;
  if (!parts || parts.tree !== tree || tree.frames.isOther(tree.frame[node])) return [];
  return mixOf(parts, node);
}

function Mix({ tree, node }: { tree: FlameTree; node: number }) {
  const mix = mixAt(tree, node);
  if (mix.length === 0) return null;
  return (
    <table class="tooltip-values" data-testid="reason-mix">
      <tbody>
        {mix.map(({ name, value }) => (
          <tr key={name ?? ""}>
            <th>
              <i class="swatch" style={{ background: `var(${reasonToken(name)})` }} aria-hidden="true" /> {reasonTitle(name)}
            </th>
            <td>{formatValue(value, tree.header.unit)}</td>
            <td>{formatShare(value, tree.total[node])}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
