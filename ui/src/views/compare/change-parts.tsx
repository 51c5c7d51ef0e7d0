// "Where did it go?": the change of what is zoomed to, told apart by its callees, and the place that makes most of it.

import { formatDifference, formatRelative } from "../../model/change.ts";
import { changeOf, changeParts, explainingNode, type ChangePart } from "../../model/change-parts.ts";
import type { ComparedTree } from "../../model/comparison.ts";
import { NONE, ROOT } from "../../model/flame-tree.ts";
import { chanceText } from "../../model/node-chance.ts";
import { formatShare, formatValue } from "../../model/units.ts";
import { zoomOut, zoomTo } from "../actions.ts";
import { zoomedNode } from "../highlight.ts";
import { Popover } from "../popover.tsx";
import { compared } from "./compared.ts";

const LISTED_PARTS = 12;
const TITLE = "Where did the change go?";

export function ChangeParts() {
  const shown = compared.value;
  if (!shown || shown.tree.isEmpty) return null;
  return (
    <Popover title={TITLE} label="Where did it go?" className="change-parts" testId="change-parts">
      {() => <Parts shown={shown} node={zoomedNode.value} />}
    </Popover>
  );
}

function Parts({ shown, node }: { shown: ComparedTree; node: number }) {
  const { tree, before, after, chance } = shown;
  const { unit } = tree.header;
  const [was, is] = [before.total[node], after.total[node]];
  const parts = changeParts(shown, node);
  const listed = parts.slice(0, LISTED_PARTS);
  const rest = parts.slice(LISTED_PARTS).reduce((sum, part) => sum + changeOf(part), 0);
  const doubt = chance && chanceText(chance, node);
  return (
    <div class="change-parts-panel">
      <h2 class="truncated" title={tree.nameOf(node)}>
        {node === ROOT ? "Everything" : tree.nameOf(node)}
      </h2>
      <p data-testid="change-parts-sum">
        {formatValue(was, unit)} → {formatValue(is, unit)}: <strong>{formatDifference(was, is, unit)}</strong> ({formatRelative(was, is)}
        {doubt !== undefined && `, ${doubt}`})
        {node !== ROOT && (
          <button type="button" class="link-button" onClick={zoomOut}>
            up to its caller
          </button>
        )}
      </p>
      <Explanation shown={shown} node={node} />
      {listed.length > 0 && (
        <table class="change-parts-table">
          <thead>
            <tr>
              <th>What it calls</th>
              <th>before</th>
              <th>after</th>
              <th>change</th>
              <th title="Below zero: it went the other way">of the change</th>
            </tr>
          </thead>
          <tbody>
            {listed.map((part) => (
              <Part key={part.of === "child" ? part.node : part.of} shown={shown} part={part} whole={is - was} />
            ))}
          </tbody>
        </table>
      )}
      {parts.length > LISTED_PARTS && (
        <p class="muted">
          {parts.length - LISTED_PARTS} more, together {formatDifference(0, rest, unit)}
        </p>
      )}
    </div>
  );
}

/** The place that makes most of it, when that is not where one is. */
function Explanation({ shown, node }: { shown: ComparedTree; node: number }) {
  const { tree, before, after } = shown;
  const deepest = explainingNode(shown, node);
  if (after.total[node] === before.total[node]) return <p class="muted">Nothing changed here in sum; what is below may have.</p>;
  if (deepest === node) return <p class="muted">No single callee makes most of it.</p>;
  const share = (after.total[deepest] - before.total[deepest]) / (after.total[node] - before.total[node]);
  return (
    <p data-testid="change-parts-explained">
      {formatShare(share, 1)} of it is in{" "}
      <button type="button" class="link-button" title={tree.nameOf(deepest)} onClick={() => zoomTo(deepest)}>
        {tree.frames.shortName(tree.frame[deepest])}
      </button>
      , {tree.depth[deepest] - tree.depth[node]} {tree.depth[deepest] - tree.depth[node] === 1 ? "call" : "calls"} below.
    </p>
  );
}

function Part({ shown, part, whole }: { shown: ComparedTree; part: ChangePart; whole: number }) {
  const { tree, chance, look } = shown;
  const { unit } = tree.header;
  const mayBeChance = part.node !== NONE && chance?.isUncertain[part.node] === 1;
  return (
    <tr class={mayBeChance ? "is-chance" : undefined} title={mayBeChance ? "may be chance" : undefined}>
      <th scope="row">
        {part.of === "self" && "its own code"}
        {part.of === "unseen" && `calls that are only ${look.widths === "after" ? "before" : "after"}`}
        {part.of === "child" && (
          <button type="button" class="link-button truncated" title={tree.nameOf(part.node)} onClick={() => zoomTo(part.node)}>
            {tree.frames.shortName(tree.frame[part.node])}
          </button>
        )}
      </th>
      <td>{formatValue(part.before, unit)}</td>
      <td>{formatValue(part.after, unit)}</td>
      <td>{formatDifference(part.before, part.after, unit)}</td>
      <td>{whole === 0 ? "–" : `${Math.sign(changeOf(part)) === Math.sign(whole) ? "" : "−"}${formatShare(Math.abs(changeOf(part)), Math.abs(whole))}`}</td>
    </tr>
  );
}
