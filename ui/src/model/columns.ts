// The packed answer of `/api/v1/flamegraph?format=columns` ("CFG1"), read into typed arrays that view the answer's own memory.
// Nothing is parsed per node: one JSON header, then little-endian columns at multiples of 8.

/** In the head of every answer about values. */
export interface PartialHead {
  /** The answer holds only a part of what matches. */
  partial?: boolean;
  partial_reason?: string;
}

/** What the header of a CFG1 answer says. Times are unix milliseconds, `total` is in `unit`. */
export interface FlameHeader extends PartialHead {
  schema: string;
  type: string;
  unit: string;
  from: number;
  to: number;
  total: number;
  /** Sampled events; null where what was recorded does not say. */
  samples: number | null;
  /** How long the profiles took, what several cover counted once: what rates are averages over. Null where none says so. */
  profiled_ms?: number | null | undefined;
  nodes: number;
  frames: number;
  /** Nodes folded into `other` frames to keep the answer small; their value is still in the totals. */
  pruned: number;
  hint?: string;
  kinds: string[];
  columns: ColumnEntry[];
}

interface ColumnEntry {
  name: string;
  type: ColumnType;
  offset: number;
  length: number;
}

type ColumnType = "u8" | "u16" | "u32" | "f64";

/** One entry a node, pre-order, node 0 the root. `subtreeEnd` is the exclusive index behind the node's last descendant. */
export interface NodeColumns {
  frame: Uint32Array;
  depth: Uint16Array;
  subtreeEnd: Uint32Array;
  total: Float64Array;
  self: Float64Array;
}

/** One entry a distinct frame; names are indexes into the string table. */
export interface FrameColumns {
  name: Uint32Array;
  file: Uint32Array;
  mapping: Uint32Array;
  kind: Uint8Array;
  line: Uint32Array;
}

export interface StringColumns {
  offsets: Uint32Array;
  bytes: Uint8Array;
}

export interface FlameColumns {
  header: FlameHeader;
  nodes: NodeColumns;
  frames: FrameColumns;
  strings: StringColumns;
}

/** The columns of an answer by name, each a view into it. */
export interface ColumnReader {
  header: FlameHeader;
  u8: (name: string) => Uint8Array;
  u16: (name: string) => Uint16Array;
  u32: (name: string) => Uint32Array;
  f64: (name: string) => Float64Array;
}

/** The answer is not the CFG1 it claims to be: a proxy that rewrites bodies, or a server and a page of different versions. */
export class DecodeError extends Error {
  override readonly name = "DecodeError";
}

const MAGIC = "CFG1";
const ALIGNMENT = 8;
const SCHEMA = "candela/flamegraph/v1";

/** `schema` is what the answer has to be; by default a flame graph. */
export function openColumns(buffer: ArrayBuffer, schema: string = SCHEMA): ColumnReader {
  if (buffer.byteLength < ALIGNMENT)
    throw new DecodeError(`the answer has ${buffer.byteLength} bytes, a flame graph has at least 8`);
  const magic = new TextDecoder("latin1").decode(new Uint8Array(buffer, 0, 4));
  if (magic !== MAGIC) throw new DecodeError(`the answer starts with ${JSON.stringify(magic)} instead of ${MAGIC}`);

  const headerLength = new DataView(buffer).getUint32(4, true);
  const headerEnd = ALIGNMENT + headerLength;
  if (headerEnd > buffer.byteLength)
    throw new DecodeError(`the header needs ${headerLength} bytes, the answer ends before`);
  const header = parseHeader(new TextDecoder().decode(new Uint8Array(buffer, ALIGNMENT, headerLength)), schema);
  const dataStart = Math.ceil(headerEnd / ALIGNMENT) * ALIGNMENT;

  const column = <T>(
    name: string,
    type: ColumnType,
    view: (offset: number, length: number) => T,
    bytesPerEntry: number,
  ): T => {
    const entry = header.columns.find((candidate) => candidate.name === name);
    if (!entry) throw new DecodeError(`column ${name} is missing`);
    if (entry.type !== type) throw new DecodeError(`column ${name} is ${entry.type}, expected ${type}`);
    const offset = dataStart + entry.offset;
    if (entry.offset % ALIGNMENT !== 0)
      throw new DecodeError(`column ${name} starts at ${entry.offset}, which is no multiple of 8`);
    if (offset + entry.length * bytesPerEntry > buffer.byteLength)
      throw new DecodeError(`column ${name} reaches behind the end of the answer`);
    return view(offset, entry.length);
  };
  return {
    header,
    u8: (name) => column(name, "u8", (offset, length) => new Uint8Array(buffer, offset, length), 1),
    u16: (name) => column(name, "u16", (offset, length) => new Uint16Array(buffer, offset, length), 2),
    u32: (name) => column(name, "u32", (offset, length) => new Uint32Array(buffer, offset, length), 4),
    f64: (name) => column(name, "f64", (offset, length) => new Float64Array(buffer, offset, length), 8),
  };
}

export function decodeColumns(buffer: ArrayBuffer): FlameColumns {
  return columnsOf(openColumns(buffer));
}

export function columnsOf({ header, u8, u16, u32, f64 }: ColumnReader): FlameColumns {
  const columns: FlameColumns = {
    header,
    nodes: {
      frame: u32("frame"),
      depth: u16("depth"),
      subtreeEnd: u32("subtree_end"),
      total: f64("total"),
      self: f64("self"),
    },
    frames: {
      name: u32("frame_name"),
      file: u32("frame_file"),
      mapping: u32("frame_mapping"),
      kind: u8("frame_kind"),
      line: u32("frame_line"),
    },
    strings: { offsets: u32("string_offsets"), bytes: u8("string_bytes") },
  };
  checkLengths(columns);
  return columns;
}

function parseHeader(text: string, schema: string): FlameHeader {
  let header: Partial<FlameHeader>;
  try {
    header = JSON.parse(text) as Partial<FlameHeader>;
  } catch {
    throw new DecodeError("the header is not JSON");
  }
  if (header.schema !== schema)
    throw new DecodeError(`the schema is ${header.schema ?? "missing"}, this page reads ${schema}: reload the page`);
  if (!Array.isArray(header.columns) || !Array.isArray(header.kinds))
    throw new DecodeError("the header names no columns");
  return {
    type: "",
    unit: "",
    from: 0,
    to: 0,
    total: 0,
    samples: null,
    nodes: 0,
    frames: 0,
    pruned: 0,
    ...header,
  } as FlameHeader;
}

function checkLengths({ nodes, frames }: FlameColumns): void {
  const nodeCount = nodes.frame.length;
  for (const [name, { length }] of Object.entries(nodes)) {
    if (length !== nodeCount) throw new DecodeError(`column ${name} has ${length} entries, frame has ${nodeCount}`);
  }
  const frameCount = frames.name.length;
  for (const [name, { length }] of Object.entries(frames)) {
    if (length !== frameCount)
      throw new DecodeError(`column frame_${name} has ${length} entries, frame_name has ${frameCount}`);
  }
}
