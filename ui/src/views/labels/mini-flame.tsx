// A flame graph in the size of a stamp: asked for when it comes into view, drawn once, given up when it leaves before that.

import { useEffect, useRef, useState } from "preact/hooks";
import { wholeParameters } from "../../api/client.ts";
import { FrameColors, shadeOf } from "../../engine/colors.ts";
import { emptyLayout, layOut } from "../../engine/layout.ts";
import { FlameTree, NONE, ROOT } from "../../model/flame-tree.ts";
import { withValue } from "../../model/label-grid.ts";
import { RequestPool } from "../../model/request-pool.ts";
import { requests, selection, view } from "../store.ts";
import { flameTheme } from "../theme.ts";

const MOST_NODES = 400;
const ROW_HEIGHT = 6;
const HEIGHT = 72;
/** Below this a box is part of its neighbours' sliver. */
const NARROWEST_BOX = 1;
const pool = new RequestPool(4);

export function MiniFlame({ label, value }: { label: string; value: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [tree, setTree] = useState<FlameTree>();
  const [problem, setProblem] = useState("");
  const { query, type, from, to, filters, colorBy } = view.value;
  const question = JSON.stringify([query, type, from, to, filters, label, value]);

  useEffect(() => {
    const element = canvas.current;
    if (!element) return undefined;
    let abort: AbortController | undefined;
    const ask = (): void => {
      abort = new AbortController();
      const { signal } = abort;
      load(label, value, signal).then(
        (answer) => {
          setTree(answer);
          setProblem("");
          observer.disconnect();
        },
        (error: unknown) => signal.aborted || setProblem((error as Error).message),
      );
    };
    const observer = new IntersectionObserver((entries) => {
      const isSeen = entries.at(-1)?.isIntersecting ?? false;
      if (isSeen && !abort) ask();
      if (isSeen || !abort) return;
      abort.abort();
      abort = undefined;
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      abort?.abort();
    };
  }, [question]);

  const theme = flameTheme.value;
  useEffect(() => {
    if (canvas.current && tree) draw(canvas.current, tree);
  }, [tree, theme, colorBy]);

  return (
    <>
      <canvas ref={canvas} class="mini-flame" data-drawn={tree !== undefined} aria-hidden="true" />
      {problem !== "" && <span class="mini-flame-problem muted">{problem}</span>}
    </>
  );
}

async function load(label: string, value: string, signal: AbortSignal): Promise<FlameTree> {
  const asked = selection.peek();
  const query = withValue(asked.query, label, value) ?? asked.query;
  return pool.run(signal, async () => {
    const parameters = wholeParameters({ ...asked, query });
    const extra = [["format", "columns"], ["max_nodes", String(MOST_NODES)]] as const;
    const response = await requests.get("flamegraph", [...parameters, ...extra], signal);
    return FlameTree.decode(await response.arrayBuffer());
  });
}

function draw(canvas: HTMLCanvasElement, tree: FlameTree): void {
  const context = canvas.getContext("2d");
  const width = canvas.clientWidth;
  if (!context || width === 0) return;
  const ratio = window.devicePixelRatio;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(HEIGHT * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  if (tree.isEmpty) return;
  const theme = flameTheme.peek();
  const colors = new FrameColors(tree.frames, view.peek().colorBy, theme.hues.length / 2);
  const firstRow = trunkRows(tree);
  const lastRow = firstRow + Math.floor(HEIGHT / ROW_HEIGHT) - 1;
  const shown = { left: 0, right: tree.rootTotal, firstRow, lastRow, width, minimumWidth: NARROWEST_BOX };
  const { boxes, slivers } = layOut(tree, shown, emptyLayout());
  context.fillStyle = theme.sliver;
  for (let index = 0; index < slivers.length; index++)
    context.fillRect(slivers.x[index], (slivers.row[index] - firstRow) * ROW_HEIGHT, Math.max(0.5, slivers.width[index]), ROW_HEIGHT - 1);
  for (let index = 0; index < boxes.length; index++) {
    const frame = tree.frame[boxes.node[index]];
    const row = boxes.row[index];
    context.fillStyle = colors.fill(frame, theme, shadeOf(frame, row));
    context.fillRect(boxes.x[index], (row - firstRow) * ROW_HEIGHT, Math.max(0.5, boxes.width[index] - 0.5), ROW_HEIGHT - 1);
  }
}

/** Of the whole a node may lack this much and still be the way that everything takes. */
const TRUNK_SHARE = 0.85;
/** Of the trunk so much stays in sight. */
const SHOWN_TRUNK_ROWS = 1;

/** Rows from the root that say nothing: servers have twenty frames before the first branch. */
function trunkRows(tree: FlameTree): number {
  let node = ROOT;
  for (let child = tree.firstChild(node); child !== NONE; child = tree.firstChild(node)) {
    if (tree.total[child] < tree.rootTotal * TRUNK_SHARE) break;
    node = child;
  }
  return Math.max(0, tree.depth[node] - SHOWN_TRUNK_ROWS);
}
