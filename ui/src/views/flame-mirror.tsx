// The part of the tree around the selection as rows of a treegrid: what a screen reader reads while the canvas shows pixels. A
// window, not the whole tree: the path from the root, and the children of where we are.

import type { ComponentChildren } from "preact";
import { NONE, type FlameTree } from "../model/flame-tree.ts";
import { formatShare, formatValue } from "../model/units.ts";
import { selectedNode, zoomedNode } from "./highlight.ts";
import { flameTree } from "./store.ts";

const MAXIMUM_CHILDREN = 20;

export function mirrorRowId(node: number): string {
  return `frame-${node}`;
}

interface FlameMirrorProps {
  figures?: ((tree: FlameTree, node: number) => string[]) | undefined;
}

export function FlameMirror({ figures = costs }: FlameMirrorProps) {
  const tree = flameTree.value;
  if (!tree || tree.isEmpty) return null;
  const at = selectedNode.value === NONE ? zoomedNode.value : selectedNode.value;
  const rows = [...tree.pathTo(at), ...tree.children(at, MAXIMUM_CHILDREN)];
  return (
    <div class="visually-hidden" role="rowgroup">
      {rows.map((node) => (
        <MirrorRow key={node} tree={tree} node={node} isSelected={node === at} isOpen={tree.isWithin(at, node)}>
          {figures(tree, node).map((figure) => (
            <span role="gridcell" key={figure}>
              {figure}
            </span>
          ))}
        </MirrorRow>
      ))}
    </div>
  );
}

function costs(tree: FlameTree, node: number): string[] {
  const { unit } = tree.header;
  return [
    `self ${formatValue(tree.self[node], unit)}`,
    `total ${formatValue(tree.total[node], unit)}`,
    formatShare(tree.total[node], tree.rootTotal),
  ];
}

function MirrorRow({
  tree,
  node,
  isSelected,
  isOpen,
  children,
}: {
  tree: FlameTree;
  node: number;
  isSelected: boolean;
  isOpen: boolean;
  children: ComponentChildren;
}) {
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
      {children}
    </div>
  );
}
