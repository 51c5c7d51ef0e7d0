import { describe, expect, it } from "vitest";
import { encodeTree } from "../../bench/generate.ts";
import { DecodeError, decodeColumns } from "./columns.ts";

const TREE = {
  frame: { name: "total" },
  self: 0,
  children: [
    {
      frame: { name: "main", file: "main.c", mapping: "/bin/app", line: 12 },
      self: 3,
      children: [{ frame: { name: "Ωmega" }, self: 7 }],
    },
  ],
};

function corrupted(change: (bytes: Uint8Array, view: DataView) => void): ArrayBuffer {
  const buffer = encodeTree(TREE);
  change(new Uint8Array(buffer), new DataView(buffer));
  return buffer;
}

describe("decodeColumns", () => {
  it("reads what was written", () => {
    const { header, nodes, frames, strings } = decodeColumns(encodeTree(TREE, { samples: 10, pruned: 4 }));
    expect(header).toMatchObject({ unit: "nanoseconds", total: 10, samples: 10, nodes: 3, pruned: 4 });
    expect([...nodes.total]).toEqual([10, 10, 7]);
    expect([...nodes.self]).toEqual([0, 3, 7]);
    expect([...nodes.subtreeEnd]).toEqual([3, 3, 3]);
    expect([...frames.line]).toEqual([0, 12, 0]);
    expect(new TextDecoder().decode(strings.bytes)).toContain("Ωmega");
  });

  it("views the memory of the answer instead of copying it", () => {
    const buffer = encodeTree(TREE);
    expect(decodeColumns(buffer).nodes.total.buffer).toBe(buffer);
  });

  it.each([
    ["an empty answer", new ArrayBuffer(0), "0 bytes"],
    ["another format", corrupted((bytes) => bytes.set([0x3c, 0x21, 0x64, 0x6f])), '"<!do"'],
    ["a header that reaches behind the end", corrupted((_, view) => view.setUint32(4, 1e9, true)), "ends before"],
    ["a header that is not JSON", corrupted((bytes) => (bytes[8] = 0x78)), "not JSON"],
    ["a cut answer", encodeTree(TREE).slice(0, -64), "behind the end"],
    ["a newer schema", encodeTree(TREE, { schema: "candela/flamegraph/v2" }), "reload the page"],
  ])("refuses %s with its reason", (_, buffer, reason) => {
    expect(() => decodeColumns(buffer)).toThrow(DecodeError);
    expect(() => decodeColumns(buffer)).toThrow(reason);
  });
});
