// The part of the tree around the selection as rows of a treegrid: what a screen reader reads while the canvas shows pixels. A
// window, not the whole tree: the path from the root, and the children of where we are.

import type { ComponentChildren } from "preact";
import { NONE, type FlameTree } from "../model/flame-tree.ts";
import { formatShare, formatValue } from "../model/units.ts";

const MAXIMUM_CHILDREN = 20;

/** `picture` tells those of several pictures on one page apart. */
export function mirrorRowId(node: number, picture: string = "frame"): string {
  return `${picture}-${node}`;
}

interface FlameMirrorProps {
  tree: FlameTree;
  /** Where we are. */
  at: number;
  picture?: string;
  figures?: ((tree: FlameTree, node: number) => string[]) | undefined;
}

export function FlameMirror({ tree, at, picture, figures = costs }: FlameMirrorProps) {
  if (tree.isEmpty) return null;
  const rows = [...tree.pathTo(at), ...tree.children(at, MAXIMUM_CHILDREN)];
  return (
    <div class="visually-hidden" role="rowgroup">
      {rows.map((node) => (
        <MirrorRow
          key={node}
          tree={tree}
          node={node}
          id={mirrorRowId(node, picture)}
          isSelected={node === at}
          isOpen={tree.isWithin(at, node)}
        >
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
  id,
  isSelected,
  isOpen,
  children,
}: {
  tree: FlameTree;
  node: number;
  id: string;
  isSelected: boolean;
  isOpen: boolean;
  children: ComponentChildren;
}) {
  const hasChildren = tree.firstChild(node) !== NONE;
  return (
    <div
      role="row"
      id={id}
      aria-level={tree.depth[node] + 1}
      aria-selected={isSelected}
      aria-expanded={hasChildren ? isOpen : undefined}
    >
      <span role="gridcell">{tree.nameOf(node)}</span>
      {children}
    </div>
  );
}
