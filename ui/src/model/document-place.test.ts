import { expect, it } from "vitest";
import { placeOf, type DocumentPath, type TextPosition } from "./document-place.ts";

const DOCUMENT = `{
  "suspended": true,
  "observabilityDaemons": [
    {"perf_collector": {"note": "a \\"}\\" {", "exportTo": "ftp://profiles", "list": [1, [2], {"a": -3.5e1}]}},
    { "perfetto_daemon": { "config_text": "buffers {\\n  size_kb: \\u0031😀x nonsense\\n}" } }
  ]
}
`;

function selected(path: DocumentPath, position: TextPosition | null = null, text = DOCUMENT): string | undefined {
  const place = placeOf(text, path, position);
  return place && text.slice(place.start, place.end);
}

it("finds a member with its value, whichever way its name is written", () => {
  expect(selected(["suspended"])).toBe('"suspended": true');
  expect(selected(["observability_daemons", 0, "perf_collector", "export_to"])).toBe('"exportTo": "ftp://profiles"');
  expect(selected(["observability_daemons", 0, "perf_collector", "note"])).toBe('"note": "a \\"}\\" {"');
  expect(selected(["observability_daemons", 0, "perf_collector", "list", 2, "a"])).toBe('"a": -3.5e1');
  expect(selected(["observability_daemons", 0, "perf_collector", "list", 0])).toBe("1");
});

it("of what is long it selects the key or the bracket, and of what is missing what surrounds it", () => {
  expect(selected(["observability_daemons"])).toBe('"observabilityDaemons"');
  expect(selected(["observability_daemons", 0, "perf_collector", "list", 1])).toBe("[");
  expect(selected(["observability_daemons", 1, "perfetto_daemon", "export_to"])).toBe('"perfetto_daemon"');
  expect(selected(["observability_daemons", 7])).toBe('"observabilityDaemons"');
  expect(selected(["writers"])).toBe("{");
  expect(selected(["suspended", "more"])).toBe('"suspended": true');
});

it("finds a line and a column of a text in a string, beyond its escapes", () => {
  const path = ["observability_daemons", 1, "perfetto_daemon", "config_text"];
  expect(selected(path, { line: 1, column: 1 })).toBe("buffers");
  expect(selected(path, { line: 2, column: 3 })).toBe("size_kb");
  // The digit and the face are one character each, of six letters and of two halves.
  expect(selected(path, { line: 2, column: 12 })).toBe("\\u0031");
  expect(selected(path, { line: 2, column: 16 })).toBe("nonsense");
  expect(selected(path, { line: 3, column: 1 })).toBe("}");
  expect(selected(path, { line: 9, column: 9 })).toBe("");
});

it("finds where JSON is broken, up to its end", () => {
  const broken = '{\n  "é😀": tru\n';
  expect(selected([], { line: 2, column: 9 }, broken)).toBe("tru");
  expect(selected([], { line: 3, column: 1 }, broken)).toBe("");
  expect(selected([], { line: 9, column: 1 }, broken)).toBe("");
  expect(selected([], null, broken)).toBeUndefined();
});

it("ends on texts that are no JSON", () => {
  for (const text of ["", "[", "{", '{"a', '{"a":', "{]", "[,,]", '{"a":{"b":[1,', "}", '"', "\\", '{"a":"\\', "{a:1,,b:2}"])
    for (const path of [["a", "b", 3], [0, 0], ["b"]]) {
      const { start, end } = placeOf(text, path, { line: 3, column: 3 }) ?? { start: 0, end: 0 };
      expect(start, text).toBeLessThanOrEqual(end);
    }
});
