// One half of the sandwich: a flame graph of its own, whose boxes lead to their functions.

import { useEffect, useRef, useState } from "preact/hooks";
import { FlameView } from "../../engine/flame-view.ts";
import { EnginePerf } from "../../engine/perf.ts";
import { NONE, ROOT, type FlameTree } from "../../model/flame-tree.ts";
import { formatShare, formatValue } from "../../model/units.ts";
import type { Orientation } from "../../state/schema.ts";
import { copyName } from "../actions.ts";
import { coloring } from "../coloring.ts";
import { FlameMirror, mirrorRowId } from "../flame-mirror.tsx";
import { update } from "../store.ts";
import { flameTheme } from "../theme.ts";

interface SideFlameProps {
  tree: FlameTree;
  orientation: Orientation;
  label: string;
  testId: string;
}

export function SideFlame({ tree, orientation, label, testId }: SideFlameProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const picture = useRef<HTMLCanvasElement>(null);
  const outlines = useRef<HTMLCanvasElement>(null);
  const engine = useRef<FlameView>(undefined);
  const [hovered, setHovered] = useState(NONE);
  const [selected, setSelected] = useState(NONE);
  const theme = flameTheme.value;
  const colorBy = coloring.value;

  useEffect(() => {
    if (!scroller.current || !spacer.current || !picture.current || !outlines.current) return undefined;
    const created = new FlameView(
      { scroller: scroller.current, spacer: spacer.current, picture: picture.current, outlines: outlines.current },
      flameTheme.peek(),
      new EnginePerf(),
      { hovered: setHovered, selected: setSelected, zoomed: () => undefined, drewFirst: () => undefined },
    );
    engine.current = created;
    return () => created.destroy();
  }, []);
  useEffect(() => {
    engine.current?.setTheme(theme);
    engine.current?.setColorBy(colorBy);
    engine.current?.setOrientation(orientation);
    engine.current?.setTree(tree, "");
    setHovered(NONE);
    // The same function, where this tree has it.
    setSelected(engine.current?.selectedNode ?? NONE);
  }, [tree, orientation, theme, colorBy]);

  // Numbers of the tree before mean nothing in this one, until the engine has it.
  const within = (node: number): number => (node < tree.length ? node : NONE);
  const chosen = within(selected);
  const pointed = within(hovered);
  const shown = Math.max(ROOT, pointed === NONE ? chosen : pointed);
  const isFunction = (node: number): boolean => node > ROOT && node < tree.length && !tree.frames.isOther(tree.frame[node]);
  const center = (node: number): void => {
    if (isFunction(node)) update({ pinned: tree.nameOf(node) });
  };
  return (
    <div class="side-flame">
      <p class="side-flame-about">
        <strong class="truncated">{tree.isEmpty || shown === ROOT ? label : tree.nameOf(shown)}</strong>
        {!tree.isEmpty && shown !== ROOT && (
          <span class="muted">{costsOfSide(tree, shown).join(" · ")}</span>
        )}
      </p>
      <div
        class="flame-scroller"
        ref={scroller}
        role="treegrid"
        tabIndex={0}
        aria-label={`${label}. Arrow keys move, Enter makes the function the centre.`}
        aria-activedescendant={chosen === NONE ? undefined : mirrorRowId(chosen, testId)}
        data-testid={testId}
        onDblClick={() => center(shown)}
        onKeyDown={(event) => {
          const isUp = orientation === "flame";
          const moves = { ArrowDown: isUp ? "shallower" : "deeper", ArrowUp: isUp ? "deeper" : "shallower", ArrowLeft: "left", ArrowRight: "right" } as const;
          const move = moves[event.key as keyof typeof moves];
          if (move) engine.current?.moveSelection(move);
          else if (event.key === "Enter") center(chosen);
          else if (event.key === "c" && isFunction(chosen)) copyName(tree, chosen);
          else return;
          event.preventDefault();
        }}
      >
        {tree.isEmpty ? (
          <div class="visually-hidden" role="row">
            <span role="gridcell">{label}: none</span>
          </div>
        ) : (
          <FlameMirror tree={tree} at={Math.max(ROOT, chosen)} picture={testId} figures={costsOfSide} />
        )}
        <div class="flame-spacer" ref={spacer} role="presentation">
          <div class="flame-stage" role="presentation">
            <canvas ref={picture} aria-hidden="true" />
            <canvas ref={outlines} class="flame-outlines" aria-hidden="true" />
          </div>
        </div>
      </div>
    </div>
  );
}

function costsOfSide(tree: FlameTree, node: number): string[] {
  return [formatValue(tree.total[node], tree.header.unit), `${formatShare(tree.total[node], tree.rootTotal)} of the function`];
}
