// The part of the tree around the selection as rows of a treegrid: what a screen reader reads while the canvas shows pixels. A
// window, not the whole tree: the path from the root, and the children of where we are.

import { NONE, type FlameTree } from "../model/flame-tree.ts";
import { formatShare, formatValue } from "../model/units.ts";
import { selectedNode, zoomedNode } from "./highlight.ts";
import { flameTree } from "./store.ts";

const MAXIMUM_CHILDREN = 20;

export function mirrorRowId(node: number): string {
  return `frame-${node}`;
}

export function FlameMirror() {
  const tree = flameTree.value;
  if (!tree || tree.isEmpty) return null;
  const at = selectedNode.value === NONE ? zoomedNode.value : selectedNode.value;
  const rows = [...tree.pathTo(at), ...tree.children(at, MAXIMUM_CHILDREN)];
  return (
    <div class="visually-hidden" role="rowgroup">
      {rows.map((node) => (
        <MirrorRow key={node} tree={tree} node={node} isSelected={node === at} isOpen={tree.isWithin(at, node)} />
      ))}
    </div>
  );
}

function MirrorRow({
  tree,
  node,
  isSelected,
  isOpen,
}: {
  tree: FlameTree;
  node: number;
  isSelected: boolean;
  isOpen: boolean;
}) {
  const { unit } = tree.header;
  const hasChildren = tree.firstChild(node) !== NONE;
  return (
    <div
      role="row"
      id={mirrorRowId(node)}
      aria-level={tree.depth[node] + 1}
      aria-selected={isSelected}
      aria-expanded={hasChildren ? isOpen : undefined}
    >
      <span role="gridcell">{tree.nameOf(node)}</span>
      <span role="gridcell">{`self ${formatValue(tree.self[node], unit)}`}</span>
      <span role="gridcell">{`total ${formatValue(tree.total[node], unit)}`}</span>
      <span role="gridcell">{formatShare(tree.total[node], tree.rootTotal)}</span>
    </div>
  );
}
