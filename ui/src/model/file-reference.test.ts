import { expect, it } from "vitest";
import { parseFileReference, printFileReference } from "./file-reference.ts";

const id = "0123456789abcdef".repeat(2);

it("is a number and a name, whatever the name has", () => {
  for (const name of ["cpu.pb.gz", "a/b c.folded", "日本.jfr", "%2F"]) {
    expect(parseFileReference(printFileReference({ id, name }))).toEqual({ id, name });
  }
});

it("is nothing else", () => {
  for (const text of ["", id, `${id}/`, `${id.toUpperCase()}/x`, `${id}0/x`, "../x"]) expect(parseFileReference(text)).toBeUndefined();
});
