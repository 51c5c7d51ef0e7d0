// What is told of a box: its values on both sides, and the change.

import { formatDifference, formatDifferenceShare, formatRelative } from "../../model/change.ts";
import { ROOT, type FlameTree } from "../../model/flame-tree.ts";
import { chanceText } from "../../model/node-chance.ts";
import { formatShare, formatValue } from "../../model/units.ts";
import type { NodeDescription } from "../flame-pane.tsx";
import { changeColors } from "./change-colors.ts";
import { compared } from "./compared.ts";

export const comparedNode: NodeDescription = { colors: changeColors, values: ComparedValues, figures };

function ComparedValues({ header: { unit } }: FlameTree, node: number) {
  const shown = compared.value;
  if (!shown) return null;
  const { before, after, chance } = shown;
  const doubt = chance && chanceText(chance, node);
  const whole = { before: before.total[ROOT], after: after.total[ROOT] };
  return (
    <table class="tooltip-values compared-values">
      <thead>
        <tr>
          <th>Cost</th>
          <th>before</th>
          <th>after</th>
          <th colSpan={2}>change</th>
          <th>of before</th>
          <th>of after</th>
        </tr>
      </thead>
      {(["total", "self"] as const).map((measure) => {
        const [was, is] = [before[measure][node], after[measure][node]];
        return (
          <tbody key={measure}>
            <tr>
              <th>{measure === "total" ? "Total" : "Self"}</th>
              <td>{formatValue(was, unit)}</td>
              <td>→ {formatValue(is, unit)}</td>
              <td>{formatDifference(was, is, unit)}</td>
              <td>{formatRelative(was, is)}</td>
              <td>{formatDifferenceShare(was, is, whole.before)}</td>
              <td>{formatDifferenceShare(was, is, whole.after)}</td>
            </tr>
            <tr class="muted">
              <th>of all</th>
              <td>{formatShare(was, whole.before)}</td>
              <td>{formatShare(is, whole.after)}</td>
            </tr>
          </tbody>
        );
      })}
      {doubt !== undefined && (
        <tfoot>
          <tr class="muted">
            <th>Change</th>
            <td class="compared-chance" colSpan={6}>
              {doubt}
            </td>
          </tr>
        </tfoot>
      )}
    </table>
  );
}

function figures({ header: { unit } }: FlameTree, node: number): string[] {
  const shown = compared.value;
  if (!shown) return [];
  return (["self", "total"] as const).map((measure) => {
    const [was, is] = [shown.before[measure][node], shown.after[measure][node]];
    const values = `${formatValue(was, unit)} → ${formatValue(is, unit)}`;
    const change = `${formatDifference(was, is, unit)}, ${formatRelative(was, is)}`;
    const doubt = measure === "total" && shown.chance ? chanceText(shown.chance, node) : undefined;
    return `${measure} ${values} (${change}${doubt === undefined ? "" : `, ${doubt}`})`;
  });
}
