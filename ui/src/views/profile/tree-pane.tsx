// The call tree as a table: who calls what, in full names, as deep as one likes. Only the rows in sight are in the document.

import { computed, signal, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import "../../styles/tree.css";
import { NONE, ROOT, type FlameTree } from "../../model/flame-tree.ts";
import { TREE_ORDERS, TreeRows, type TreeOrder } from "../../model/tree-rows.ts";
import { rowWindow, scrollToRow } from "../../model/virtual-rows.ts";
import { formatShare, formatValue } from "../../model/units.ts";
import { focusOn, openSourceOf, rememberZoom, unfold, zoomOut } from "../actions.ts";
import { ProfileState, hasFlameGraph } from "../empty-state.tsx";
import { aboutNode } from "../flame-keys.ts";
import { openMenuOf } from "../frame-menu.tsx";
import { highlight, hoveredFunction, hoveredNode, selectedNode, zoomedNode } from "../highlight.ts";
import { Segmented } from "../segmented.tsx";
import { flameTree } from "../store.ts";

const ROW_HEIGHT = 24;
const OVERSCAN = 8;
const INDENT = 14;
/** Deeper rows are not moved further to the right: their names would be out of sight. */
const MOST_INDENTS = 30;
/** Of a search, so many ways are unfolded. */
const MOST_REVEALED = 200;

const ORDER_TITLES: Record<TreeOrder, string> = { total: "Total", self: "Self", name: "Name" };

const order = signal<TreeOrder>("total");
/** Counts changes of what is open: the rows are one object, changed in place. */
const changes = signal(0);
let shown: TreeRows | undefined;

const rows = computed((): TreeRows | undefined => {
  const tree = flameTree.value;
  const top = zoomedNode.value;
  if (!tree || tree.isEmpty) return undefined;
  if (shown?.tree !== tree) {
    const next = new TreeRows(tree, order.peek(), ROOT);
    if (shown) next.openAs(shown);
    else next.openHeaviest(ROOT);
    shown = next;
  }
  shown.setOrder(order.value);
  shown.setTop(top);
  return shown;
});

function change(act: (rows_: TreeRows) => void): void {
  const at = rows.peek();
  if (!at) return;
  act(at);
  // Within an effect a reading would bring the effect about again.
  changes.value = changes.peek() + 1;
}

export function TreePane() {
  const at = rows.value;
  if (!hasFlameGraph.value || !at) return <ProfileState />;
  return (
    <div class="tree-pane">
      <div class="tree-bar">
        <span class="inline-field">
          <span>Sort by</span>
          <Segmented
            label="Order of the children"
            value={order.value}
            options={TREE_ORDERS.map((name) => [name, ORDER_TITLES[name]])}
            onChange={(name) => (order.value = name)}
          />
        </span>
        <button type="button" class="link-button" onClick={() => change((rows_) => rows_.openHeaviest(rows_.top))}>
          open the heaviest path
        </button>
        <button type="button" class="link-button" onClick={() => change((rows_) => rows_.closeAll(rows_.top))}>
          close all
        </button>
      </div>
      <div class="tree-head" aria-hidden="true">
        <span>Total</span>
        <span>Self</span>
        <span>Function</span>
      </div>
      <RowList rows={at} />
    </div>
  );
}

/** There while it has rows, so that its height is that of what is on the screen. */
function RowList({ rows: at }: { rows: TreeRows }) {
  const scroller = useRef<HTMLDivElement>(null);
  const scrollTop = useSignal(0);
  const height = useSignal(600);

  useEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => (height.value = element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, [height]);
  useSignalEffect(() => {
    const found = highlight.value?.nodes ?? [];
    if (found.length > 0) change((rows_) => rows_.reveal(found.slice(0, MOST_REVEALED)));
  });
  useSignalEffect(() => {
    const node = selectedNode.value;
    if (node !== NONE && rows.peek()?.rowOf(node) === NONE) change((rows_) => rows_.reveal([node]));
  });
  const selected = selectedNode.value;
  // What is chosen elsewhere, or by the keyboard, is brought into sight; once its row is there, for a list scrolls no further than it is long.
  useLayoutEffect(() => {
    const element = scroller.current;
    const row = selected === NONE ? NONE : at.rowOf(selected);
    if (!element || row === NONE) return;
    const top = scrollToRow(row, { rows: at.length, rowHeight: ROW_HEIGHT, scrollTop: element.scrollTop, height: element.clientHeight });
    if (top !== undefined) element.scrollTo({ top });
  }, [selected, at, zoomedNode.value]);
  useLayoutEffect(() => () => (hoveredFunction.value = ""), []);

  // The rows are one object, whatever is open in it, their order and their top.
  void [changes.value, order.value, zoomedNode.value];
  const { first, last, listHeight, top } = rowWindow({
    rows: at.length,
    rowHeight: ROW_HEIGHT,
    scrollTop: scrollTop.value,
    height: height.value,
    overscan: OVERSCAN,
  });
  const numbers = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index);
  return (
    <div
      class="tree-scroller"
      ref={scroller}
      role="treegrid"
      tabIndex={0}
      aria-label="Call tree. Arrow keys move, open and close; Enter zooms, f focuses, Backspace goes up, * opens everything below."
      aria-rowcount={at.length}
      aria-activedescendant={selected === NONE ? undefined : `tree-${selected}`}
      data-testid="tree"
      onScroll={(event) => (scrollTop.value = event.currentTarget.scrollTop)}
      onKeyDown={onKeyDown}
      onContextMenu={openMenu}
      onPointerLeave={() => (hoveredNode.value = NONE)}
    >
      <div role="rowgroup" class="tree-rows" style={{ height: `${listHeight}px` }}>
        <div role="presentation" style={{ transform: `translateY(${top}px)` }}>
          {numbers.map((row) => {
            const node = at.nodeAt(row);
            const level = at.tree.depth[node] - at.tree.depth[at.top];
            return <Row key={node} tree={at.tree} node={node} position={row} level={level} isOpen={at.isOpen(node)} canOpen={at.hasChildren(node)} />;
          })}
        </div>
      </div>
    </div>
  );
}

/** What may change of a row is a value here: rows with equal ones are not drawn again. */
interface RowProps {
  tree: FlameTree;
  node: number;
  position: number;
  level: number;
  isOpen: boolean;
  canOpen: boolean;
}

function Row({ tree, node, position, level, isOpen, canOpen }: RowProps) {
  const isMatched = highlight.value?.nodes.includes(node) ?? false;
  const isLinked = hoveredFunction.value !== "" && tree.nameOf(node) === hoveredFunction.value;
  const state = `${isMatched ? " is-matched" : ""}${isLinked ? " is-linked" : ""}`;
  return (
    <div
      class={`tree-row${state}`}
      role="row"
      id={`tree-${node}`}
      aria-level={level + 1}
      aria-rowindex={position + 1}
      aria-expanded={canOpen ? isOpen : undefined}
      aria-selected={selectedNode.value === node}
      data-testid="tree-row"
      data-function={tree.nameOf(node)}
      data-node={node}
      onPointerEnter={() => (hoveredNode.value = node)}
      onClick={() => (selectedNode.value = node)}
      onDblClick={() => goTo(tree, node)}
    >
      <Cost tree={tree} value={tree.total[node]} />
      <Cost tree={tree} value={tree.self[node]} />
      <span class="tree-name" role="gridcell" style={{ paddingLeft: `${Math.min(level, MOST_INDENTS) * INDENT}px` }}>
        {canOpen ? (
          <button
            type="button"
            class="tree-toggle"
            tabIndex={-1}
            aria-label={isOpen ? "Close" : "Open"}
            onClick={(event) => {
              event.stopPropagation();
              change((rows_) => (isOpen ? rows_.close(node) : rows_.open(node)));
            }}
          >
            {isOpen ? "▾" : "▸"}
          </button>
        ) : (
          <span class="tree-toggle" />
        )}
        <span class="truncated" title={describe(tree, node)}>
          {tree.nameOf(node)}
        </span>
        {tree.frames.kind(tree.frame[node]) === "kernel" && <span class="kind">kernel</span>}
      </span>
    </div>
  );
}

function describe(tree: FlameTree, node: number): string {
  const { name, file, line, mapping } = tree.frames.get(tree.frame[node]);
  return [name, file === "" ? "" : `${file}${line > 0 ? `:${line}` : ""}`, mapping].filter((part) => part !== "").join("\n");
}

function Cost({ tree, value }: { tree: FlameTree; value: number }) {
  const whole = tree.rootTotal;
  return (
    <span class="tree-cost cost" role="gridcell" title={formatValue(value, tree.header.unit)}>
      <span class="cost-bar" style={{ width: `${whole > 0 ? (100 * value) / whole : 0}%` }} aria-hidden="true" />
      <span class="cost-share">{value === 0 ? "–" : formatShare(value, whole)}</span>
      <span class="cost-value">{value === 0 ? "" : formatValue(value, tree.header.unit)}</span>
    </span>
  );
}

/** What is folded has nothing below itself to zoom to. */
function goTo(tree: FlameTree, node: number): void {
  if (tree.frames.isOther(tree.frame[node])) unfold(tree, node);
  else rememberZoom(node);
}

/** Of the row below the pointer; by its key, which has no place, of the one that is selected. */
function openMenu(event: MouseEvent): void {
  if (!(event.target instanceof HTMLElement) || !(event.currentTarget instanceof HTMLElement)) return;
  const row = event.target.closest<HTMLElement>("[data-node]");
  const node = row ? Number(row.dataset.node) : selectedNode.peek();
  selectedNode.value = node;
  openMenuOf(node, event, event.currentTarget);
}

function onKeyDown(event: KeyboardEvent): void {
  const at = rows.peek();
  if (!at || event.ctrlKey || event.metaKey || event.altKey) return;
  const node = selectedNode.peek() === NONE ? at.top : selectedNode.peek();
  const row = at.rowOf(node);
  const step = (by: number): void => {
    selectedNode.value = at.nodeAt(Math.max(0, Math.min(at.length - 1, row + by)));
  };
  const actions: Record<string, () => void> = {
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    PageDown: () => step(20),
    PageUp: () => step(-20),
    Home: () => step(-at.length),
    End: () => step(at.length),
    ArrowRight: () => (at.isOpen(node) || !at.hasChildren(node) ? step(1) : change((rows_) => rows_.open(node))),
    ArrowLeft: () => {
      if (at.isOpen(node)) change((rows_) => rows_.close(node));
      else if (node !== at.top) selectedNode.value = at.tree.parentOf(node);
    },
    "*": () => change((rows_) => rows_.openAll(node)),
    Enter: () => goTo(at.tree, node),
    f: () => focusOn(node),
    Backspace: zoomOut,
    c: () => aboutNode("c", node),
    s: () => aboutNode("s", node),
    m: () => aboutNode("m", node),
    o: () => openSourceOf(node),
  };
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}
