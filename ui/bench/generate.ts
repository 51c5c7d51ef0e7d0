// Trees of any size for unit tests and benchmarks: deterministic, in the shape profiles have (few heavy paths, long tails), written
// as the CFG1 bytes a server would send.

export interface GeneratedFrame {
  name: string;
  file?: string;
  mapping?: string;
  kind?: string;
  line?: number;
}

/** A tree as nested values: what a test writes by hand. `self` is what the children leave over unless given. */
export interface TreeSpec {
  frame: GeneratedFrame;
  self: number;
  children?: TreeSpec[];
}

interface NodeLists {
  frame: number[] | Uint32Array;
  depth: number[] | Uint16Array;
  subtreeEnd: number[] | Uint32Array;
  total: number[] | Float64Array;
  self: number[] | Float64Array;
}

const KINDS = ["native", "kernel", "go", "rust", "jvm", "other"];

/** A pseudo-random sequence in [0, 1) (mulberry32): the same tree on every machine. */
export function randomSequence(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export function encodeTree(root: TreeSpec, header: Record<string, unknown> = {}): ArrayBuffer {
  const frames: GeneratedFrame[] = [{ name: "total" }];
  const frameIndexes = new Map<string, number>();
  const nodes = {
    frame: [] as number[],
    depth: [] as number[],
    subtreeEnd: [] as number[],
    total: [] as number[],
    self: [] as number[],
  };

  const frameIndex = (frame: GeneratedFrame): number => {
    const key = JSON.stringify(frame);
    const known = frameIndexes.get(key);
    if (known !== undefined) return known;
    frames.push(frame);
    frameIndexes.set(key, frames.length - 1);
    return frames.length - 1;
  };
  const add = (spec: TreeSpec, depth: number): number => {
    const node = nodes.frame.length;
    nodes.frame.push(depth === 0 ? 0 : frameIndex(spec.frame));
    nodes.depth.push(depth);
    nodes.subtreeEnd.push(0);
    nodes.self.push(spec.self);
    nodes.total.push(0);
    nodes.total[node] = (spec.children ?? []).reduce((sum, child) => sum + add(child, depth + 1), spec.self);
    nodes.subtreeEnd[node] = nodes.frame.length;
    return nodes.total[node];
  };
  add(root, 0);
  return encodeColumns(frames, nodes, header);
}

/**
 * About `size` nodes over `frameCount` frames. Each node shares its weight out among a few children in geometric steps, so a
 * handful of paths is wide and the tail is long; the widest nodes are opened first, as sampling would find them.
 */
export function generateTree(size: number, frameCount: number, seed: number, maximumDepth: number = 60): ArrayBuffer {
  const random = randomSequence(seed);
  const frames: GeneratedFrame[] = [{ name: "total" }];
  for (let frame = 1; frame < frameCount; frame++) {
    const kind = frame % 9 === 0 ? "kernel" : frame % 3 === 0 ? "go" : "native";
    frames.push({
      name: `module_${frame % 61}::function_${frame}`,
      file: `src/module_${frame % 61}.c`,
      mapping: `/usr/lib/lib${frame % 17}.so`,
      kind,
      line: frame,
    });
  }

  const nodes = {
    frame: new Uint32Array(size),
    depth: new Uint16Array(size),
    subtreeEnd: new Uint32Array(size),
    total: new Float64Array(size),
    self: new Float64Array(size),
  };
  let count = 0;
  // Each subtree gets a budget of nodes in proportion to its weight, so the walk below fills exactly `size`.
  const add = (weight: number, budget: number, depth: number): void => {
    const node = count++;
    nodes.frame[node] = depth === 0 ? 0 : 1 + Math.floor(random() * (frameCount - 1));
    nodes.depth[node] = depth;
    nodes.total[node] = weight;
    let remaining = weight;
    let remainingBudget = budget - 1;
    if (depth < maximumDepth && weight > 1) {
      const keeps = Math.floor(weight * random() * 0.2);
      remaining -= keeps;
      nodes.self[node] = keeps;
      let share = 0.35 + 0.6 * random();
      let previous = Number.POSITIVE_INFINITY;
      while (remainingBudget > 0 && remaining > 0) {
        const childWeight = Math.min(previous, Math.max(1, Math.floor(remaining * share)));
        const childBudget = Math.max(
          1,
          Math.min(remainingBudget, Math.round((remainingBudget * childWeight) / remaining)),
        );
        const before = count;
        add(childWeight, childBudget, depth + 1);
        remainingBudget -= count - before;
        remaining -= childWeight;
        previous = childWeight;
        share = 0.3 + 0.65 * random();
      }
    }
    nodes.self[node] += remaining;
    nodes.subtreeEnd[node] = count;
  };
  add(size * 1000, size, 0);
  return encodeColumns(frames, cut(nodes, count));
}

function cut(nodes: Record<keyof NodeLists, Uint32Array | Uint16Array | Float64Array>, count: number): NodeLists {
  return Object.fromEntries(
    Object.entries(nodes).map(([name, column]) => [name, column.slice(0, count)]),
  ) as unknown as NodeLists;
}

/** The CFG1 bytes: header, padding, columns at multiples of 8. `further` columns are those of a comparison. */
export function encodeColumns(
  frames: readonly GeneratedFrame[],
  nodes: NodeLists,
  header: Record<string, unknown> = {},
  further: Record<string, Float64Array> = {},
): ArrayBuffer {
  const strings = [""];
  const stringIndexes = new Map([["", 0]]);
  const stringIndex = (text: string): number => {
    const known = stringIndexes.get(text);
    if (known !== undefined) return known;
    strings.push(text);
    stringIndexes.set(text, strings.length - 1);
    return strings.length - 1;
  };
  const frameColumns = {
    frame_name: Uint32Array.from(frames, ({ name }) => stringIndex(name)),
    frame_file: Uint32Array.from(frames, ({ file = "" }) => stringIndex(file)),
    frame_mapping: Uint32Array.from(frames, ({ mapping = "" }) => stringIndex(mapping)),
    frame_kind: Uint8Array.from(frames, ({ kind = "native" }) => Math.max(0, KINDS.indexOf(kind))),
    frame_line: Uint32Array.from(frames, ({ line = 0 }) => line),
  };
  const encoded = strings.map((text) => new TextEncoder().encode(text));
  const offsets = new Uint32Array(strings.length + 1);
  encoded.forEach((bytes, index) => (offsets[index + 1] = offsets[index] + bytes.length));
  const stringBytes = new Uint8Array(offsets[strings.length]);
  encoded.forEach((bytes, index) => stringBytes.set(bytes, offsets[index]));

  const columns: Record<string, Uint8Array | Uint16Array | Uint32Array | Float64Array> = {
    frame: Uint32Array.from(nodes.frame),
    depth: Uint16Array.from(nodes.depth),
    subtree_end: Uint32Array.from(nodes.subtreeEnd),
    total: Float64Array.from(nodes.total),
    self: Float64Array.from(nodes.self),
    ...further,
    ...frameColumns,
    string_offsets: offsets,
    string_bytes: stringBytes,
  };
  let dataLength = 0;
  const entries = Object.entries(columns).map(([name, column]) => {
    const entry = { name, type: typeName(column), offset: dataLength, length: column.length };
    dataLength = align(dataLength + column.byteLength);
    return entry;
  });
  const headerText = JSON.stringify({
    schema: "candela/flamegraph/v1",
    type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
    unit: "nanoseconds",
    from: 0,
    to: 3_600_000,
    total: nodes.total[0] ?? 0,
    samples: nodes.total[0] ?? 0,
    nodes: nodes.frame.length,
    frames: frames.length,
    pruned: 0,
    kinds: KINDS,
    ...header,
    columns: entries,
  });
  const headerBytes = new TextEncoder().encode(headerText);
  const dataStart = align(8 + headerBytes.length);
  const buffer = new ArrayBuffer(dataStart + dataLength);
  const bytes = new Uint8Array(buffer);
  bytes.set(new TextEncoder().encode("CFG1"));
  new DataView(buffer).setUint32(4, headerBytes.length, true);
  bytes.set(headerBytes, 8);
  entries.forEach(({ name, offset }) => {
    const column = columns[name];
    bytes.set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength), dataStart + offset);
  });
  return buffer;
}

function align(offset: number): number {
  return Math.ceil(offset / 8) * 8;
}

function typeName(column: Uint8Array | Uint16Array | Uint32Array | Float64Array): string {
  if (column instanceof Uint8Array) return "u8";
  if (column instanceof Uint16Array) return "u16";
  return column instanceof Uint32Array ? "u32" : "f64";
}

/** The worst shape for drawing: `columns` equal stacks of `depth` frames side by side, nothing to skip until they get too narrow. */
export function generateComb(columns: number, depth: number): ArrayBuffer {
  const frames: GeneratedFrame[] = [
    { name: "total" },
    ...Array.from({ length: 1000 }, (_, frame) => ({ name: `function_${frame}` })),
  ];
  const size = 1 + columns * depth;
  const nodes = {
    frame: new Uint32Array(size),
    depth: new Uint16Array(size),
    subtreeEnd: new Uint32Array(size),
    total: new Float64Array(size).fill(1000),
    self: new Float64Array(size),
  };
  nodes.total[0] = 1000 * columns;
  nodes.subtreeEnd[0] = size;
  for (let column = 0; column < columns; column++) {
    const first = 1 + column * depth;
    for (let row = 0; row < depth; row++) {
      nodes.frame[first + row] = 1 + ((column * 7 + row) % 1000);
      nodes.depth[first + row] = row + 1;
      nodes.subtreeEnd[first + row] = first + depth;
    }
    nodes.self[first + depth - 1] = 1000;
  }
  return encodeColumns(frames, nodes);
}
