// The flame graph with its tooltip and accessible mirror; the engine paints, this hands it what to paint.

import { useSignalEffect, type ReadonlySignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { NodeColors } from "../engine/colors.ts";
import { FlameView } from "../engine/flame-view.ts";
import { NONE, type FlameTree } from "../model/flame-tree.ts";
import { flameView, rememberZoom } from "./actions.ts";
import { coloring } from "./coloring.ts";
import { openFrameMenu } from "./frame-menu.tsx";
import { handleFlameKey } from "./flame-keys.ts";
import { FlameMirror, mirrorRowId } from "./flame-mirror.tsx";
import { hasFlameGraph, ProfileState } from "./empty-state.tsx";
import { FlameTooltip } from "./flame-tooltip.tsx";
import {
  highlightedFrames,
  hoveredFunction,
  hoveredNode,
  perf,
  pointer,
  selectedNode,
  zoomedNode,
} from "./highlight.ts";
import { flameTree, view } from "./store.ts";
import { flameTheme } from "./theme.ts";

/** What another picture than that of one profile tells of a node. */
export interface NodeDescription {
  colors: ReadonlySignal<NodeColors | undefined>;
  /** In the tooltip. */
  values: (tree: FlameTree, node: number) => ComponentChildren;
  /** In a line of text. */
  figures: (tree: FlameTree, node: number) => string[];
}

export function FlamePane({ description }: { description?: NodeDescription | undefined }) {
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const picture = useRef<HTMLCanvasElement>(null);
  const outlines = useRef<HTMLCanvasElement>(null);

  useEffect(() => {
    if (!scroller.current || !spacer.current || !picture.current || !outlines.current) return undefined;
    const engine = new FlameView(
      { scroller: scroller.current, spacer: spacer.current, picture: picture.current, outlines: outlines.current },
      flameTheme.peek(),
      perf,
      {
        hovered: (node, x, y) => {
          hoveredNode.value = node;
          if (node !== NONE) pointer.value = { x, y };
        },
        selected: (node) => (selectedNode.value = node),
        zoomed: rememberZoom,
        drewFirst: markFirstPicture,
      },
    );
    flameView.current = engine;
    show(engine);
    return () => {
      engine.destroy();
      flameView.current = undefined;
    };
  }, []);

  useSignalEffect(() => {
    void flameTree.value;
    if (flameView.current) show(flameView.current);
  });
  useSignalEffect(() => flameView.current?.setTheme(flameTheme.value));
  useSignalEffect(() => flameView.current?.setColorBy(coloring.value));
  useSignalEffect(() => flameView.current?.setNodeColors(description?.colors.value));
  useSignalEffect(() => flameView.current?.setOrientation(view.value.orientation));
  useSignalEffect(() => flameView.current?.setMatches(highlightedFrames.value));
  useSignalEffect(() => {
    const name = hoveredFunction.value;
    const tree = flameTree.peek();
    flameView.current?.setLinkedFrames(new Set(tree && name !== "" ? tree.frames.framesNamed(name) : []));
  });
  useSignalEffect(() => followAddress(zoomedNode.value));

  const isShown = hasFlameGraph.value;
  return (
    <div class="flame">
      <div
        class="flame-scroller"
        ref={scroller}
        role="treegrid"
        tabIndex={0}
        aria-label="Flame graph. Arrow keys move, Enter zooms, Escape goes up, slash searches."
        aria-activedescendant={isShown && selectedNode.value !== NONE ? mirrorRowId(selectedNode.value) : undefined}
        data-testid="flamegraph"
        onKeyDown={handleFlameKey}
        onContextMenu={openFrameMenu}
        hidden={!isShown}
      >
        <div class="flame-spacer" ref={spacer} role="presentation">
          <div class="flame-stage" role="presentation">
            <canvas ref={picture} data-testid="flamegraph-canvas" aria-hidden="true" />
            <canvas ref={outlines} class="flame-outlines" aria-hidden="true" />
          </div>
        </div>
        {isShown && <PictureMirror figures={description?.figures} />}
      </div>
      {!isShown && <ProfileState />}
      <FlameTooltip values={description?.values} />
    </div>
  );
}

/** By itself, so that a zoom does not draw the pane anew. */
function PictureMirror({ figures }: { figures: NodeDescription["figures"] | undefined }) {
  const tree = flameTree.value;
  return tree ? <FlameMirror tree={tree} at={selectedNode.value === NONE ? zoomedNode.value : selectedNode.value} figures={figures} /> : null;
}

/** Once a page: the browser keeps every mark. */
function markFirstPicture(): void {
  if (performance.getEntriesByName("fg:first").length === 0) performance.mark("fg:first");
}

function show(engine: FlameView): void {
  const tree = flameTree.peek();
  if (!tree) return;
  engine.setColorBy(coloring.peek());
  engine.setOrientation(view.peek().orientation);
  engine.setTree(tree, view.peek().zoom);
  engine.setMatches(highlightedFrames.peek());
  selectedNode.value = engine.selectedNode;
  if (view.peek().path !== "") performance.mark("focus:drawn");
}

/** Back and forward change the zoom without the engine having asked for it. */
function followAddress(node: number): void {
  const engine = flameView.current;
  // A node of a tree that the engine does not have yet comes with that tree.
  if (engine && engine.tree === flameTree.peek() && node !== engine.zoomNode) engine.zoomTo(node, false);
}
