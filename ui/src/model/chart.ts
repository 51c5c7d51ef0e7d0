// What each thread did when: the packed answer of `/api/v1/chart`, and the rows of boxes of each of its lanes. A box of a row is a
// function on the stack for as long as samples show no other; the rows of a lane are worked out when it is first looked at.

import { columnsOf, DecodeError, openColumns, type FlameHeader } from "./columns.ts";
import { FlameTree, NONE, ROOT } from "./flame-tree.ts";

export const CHART_SCHEMA = "candela/chart/v1";

export interface ChartHeader extends FlameHeader {
  /** Stored samples whose time is known, and those of which only the profile is known. */
  timed: number;
  untimed: number;
  lanes: LaneHead[];
}

interface LaneHead {
  labels: Record<string, string>;
  total: number;
  samples: number;
  boxes: number;
}

/** Stacks in the order of time. Times are milliseconds from the start of the range. */
export interface StackTimes {
  start: Float64Array;
  end: Float64Array;
  /** The node at which the stack ends. */
  node: Uint32Array;
  samples: Uint32Array;
  value: Float64Array;
}

/** The boxes of one row of a lane, by time; no two overlap. */
export interface LaneRow {
  start: number[];
  end: number[];
  node: number[];
  samples: number[];
  value: number[];
}

export class Lane {
  readonly title: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly total: number;
  readonly samples: number;
  readonly stacks: StackTimes;
  readonly #tree: FlameTree;
  #rows: LaneRow[] | undefined;

  constructor(tree: FlameTree, head: Omit<LaneHead, "boxes">, title: string, stacks: StackTimes) {
    this.#tree = tree;
    this.labels = head.labels;
    this.total = head.total;
    this.samples = head.samples;
    this.title = title;
    this.stacks = stacks;
  }

  /** From the outermost function on; the root of the tree is no row. */
  get rows(): readonly LaneRow[] {
    return (this.#rows ??= rowsOf(this.#tree, this.stacks));
  }
}

export interface Chart {
  header: ChartHeader;
  tree: FlameTree;
  /** All together first, where there are several; then the most expensive. */
  lanes: Lane[];
}

const NANOSECONDS_PER_MILLISECOND = 1e6;

export function decodeChart(buffer: ArrayBuffer): Chart {
  const reader = openColumns(buffer, CHART_SCHEMA);
  const header = reader.header as ChartHeader;
  if (!Array.isArray(header.lanes)) throw new DecodeError("the header names no lanes");
  const tree = new FlameTree(columnsOf(reader));
  const start = reader.f64("box_start");
  const length = reader.f64("box_length");
  const node = reader.f64("box_node");
  const samples = reader.f64("box_samples");
  const value = reader.f64("box_value");
  const count = header.lanes.reduce((sum, { boxes }) => sum + boxes, 0);
  for (const column of [start, length, node, samples, value])
    if (column.length !== count) throw new DecodeError(`${column.length} boxes in the columns, ${count} in the lanes`);
  if (node.some((at) => !(at < tree.length))) throw new DecodeError("a box has a stack that is not there");

  let next = 0;
  const lanes = header.lanes.map((head) => {
    const [first, end] = [next, next + head.boxes];
    next = end;
    const starts = Float64Array.from(start.subarray(first, end), (at) => at / NANOSECONDS_PER_MILLISECOND);
    const lengths = length.subarray(first, end);
    return new Lane(tree, head, laneTitle(head.labels), {
      start: starts,
      end: Float64Array.from(lengths, (long, index) => starts[index] + long / NANOSECONDS_PER_MILLISECOND),
      node: Uint32Array.from(node.subarray(first, end)),
      samples: Uint32Array.from(samples.subarray(first, end)),
      value: value.subarray(first, end),
    });
  });
  return { header, tree, lanes: lanes.length > 1 ? [mergedLane(tree, lanes), ...lanes] : lanes };
}

export const MERGED_TITLE = "All together";

const THREAD_LABELS: ReadonlySet<string> = new Set(["thread_name", "thread_id", "pid"]);

/** A thread by its name, then its numbers, then what else tells it apart. */
export function laneTitle(labels: Readonly<Record<string, string>>): string {
  const { thread_name: name, thread_id: thread, pid } = labels;
  const others = Object.entries(labels).filter(([label]) => !THREAD_LABELS.has(label));
  const numbers = [thread !== undefined && `thread ${thread}`, pid !== undefined && pid !== thread && `pid ${pid}`];
  const parts = [name, ...numbers, ...others.map(([label, value]) => `${label} ${value}`)];
  return parts.filter((part): part is string => typeof part === "string" && part !== "").join(" · ") || "no labels";
}

/** The boxes of all lanes as single samples in the order of time, each until the next one: whose they are does not matter. */
function mergedLane(tree: FlameTree, lanes: readonly Lane[]): Lane {
  const total = lanes.reduce((sum, lane) => sum + lane.total, 0);
  const samples = lanes.reduce((sum, lane) => sum + lane.samples, 0);
  return new Lane(tree, { labels: {}, total, samples }, MERGED_TITLE, mergedStacks(lanes.map(({ stacks }) => stacks)));
}

export function mergedStacks(lanes: readonly StackTimes[]): StackTimes {
  const count = lanes.reduce((sum, { samples }) => sum + samples.reduce((all, own) => all + own, 0), 0);
  const start = new Float64Array(count);
  const end = new Float64Array(count);
  const node = new Uint32Array(count);
  const value = new Float64Array(count);
  let next = 0;
  for (const lane of lanes) {
    for (let box = 0; box < lane.start.length; box++) {
      const parts = lane.samples[box];
      const length = (lane.end[box] - lane.start[box]) / parts;
      for (let part = 0; part < parts; part++, next++) {
        start[next] = lane.start[box] + part * length;
        end[next] = start[next] + length;
        node[next] = lane.node[box];
        value[next] = lane.value[box] / parts;
      }
    }
  }
  const order = Uint32Array.from({ length: count }, (_, index) => index).toSorted((one, other) => start[one] - start[other]);
  const inOrder = (column: Float64Array): Float64Array => Float64Array.from(order, (at) => column[at]);
  const starts = inOrder(start);
  return {
    start: starts,
    end: inOrder(end).map((at, index) => (index + 1 < count ? Math.min(at, starts[index + 1]) : at)),
    node: Uint32Array.from(order, (at) => node[at]),
    samples: new Uint32Array(count).fill(1),
    value: inOrder(value),
  };
}

/** Boxes closer than this touch: a thousandth of the shortest sample distance in use. */
const TOUCH_MILLISECONDS = 1e-3;

/** A function that stays on the stack stays one box, whatever is called meanwhile. */
export function rowsOf(tree: FlameTree, { start, end, node, samples, value }: StackTimes): LaneRow[] {
  const rows: LaneRow[] = [];
  /** The node of each row in the stack before. */
  let before: number[] = [];
  for (let index = 0; index < start.length; index++) {
    const path = pathBelowRoot(tree, node[index]);
    const touches = index > 0 && start[index] - end[index - 1] <= TOUCH_MILLISECONDS;
    let goesOn = touches;
    for (let depth = 0; depth < path.length; depth++) {
      const row = (rows[depth] ??= { start: [], end: [], node: [], samples: [], value: [] });
      goesOn &&= before[depth] === path[depth];
      if (goesOn) {
        const last = row.end.length - 1;
        row.end[last] = end[index];
        row.samples[last] += samples[index];
        row.value[last] += value[index];
      } else {
        row.start.push(start[index]);
        row.end.push(end[index]);
        row.node.push(path[depth]);
        row.samples.push(samples[index]);
        row.value.push(value[index]);
      }
    }
    before = path;
  }
  return rows;
}

function pathBelowRoot(tree: FlameTree, node: number): number[] {
  const path: number[] = [];
  for (let at = node; at !== NONE && at !== ROOT; at = tree.parentOf(at)) path.push(at);
  return path.toReversed();
}

/** The first box of a row that ends behind a time. */
export function firstBoxBehind({ end }: LaneRow, time: number): number {
  let low = 0;
  let high = end.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (end[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The box of a row at a time; `NONE` in a gap. */
export function boxAt(row: LaneRow, time: number): number {
  const box = firstBoxBehind(row, time);
  return box < row.start.length && row.start[box] <= time ? box : NONE;
}
