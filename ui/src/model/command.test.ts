import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { queryCommand, shellQuote } from "./command.ts";

const hostile = ["$(touch /tmp/x)", "a'b", "'; rm -rf ~ #", "`id`", "a\nb", "", '{service_name="check out"}', "\\"];

it("survives the shell unchanged, whatever a link holds", () => {
  for (const text of [...hostile, "now-1h", "cpu"]) {
    expect(execFileSync("sh", ["-c", `printf %s ${shellQuote(text)}`], { encoding: "utf8" })).toBe(text);
  }
});

it("is readable where nothing needs quotes", () => {
  expect(
    queryCommand("http://127.0.0.1:4040", { query: '{service_name="api"}', type: "cpu", from: "now-1h", to: "now" }),
  ).toBe(
    `candela query top --server http://127.0.0.1:4040 --query '{service_name="api"}' --type cpu --from now-1h --to now`,
  );
});
