import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { diffCommand, fileCommand, fileDiffCommand, queryCommand, seriesCommand, serverOfPage, shellQuote } from "./command.ts";

const hostile = ["$(touch /tmp/x)", "a'b", "'; rm -rf ~ #", "`id`", "a\nb", "", '{service_name="check out"}', "\\"];

it("survives the shell unchanged, whatever a link holds", () => {
  for (const text of [...hostile, "now-1h", "cpu"]) {
    expect(execFileSync("sh", ["-c", `printf %s ${shellQuote(text)}`], { encoding: "utf8" })).toBe(text);
  }
});

it("asks the server below the prefix of the page", () => {
  expect(serverOfPage("http://127.0.0.1:4040/?v=1&query={}")).toBe("http://127.0.0.1:4040");
  expect(serverOfPage("https://example.org/tools/candela/?v=1#x")).toBe("https://example.org/tools/candela");
  expect(serverOfPage("https://example.org/tools/candela/index.html")).toBe("https://example.org/tools/candela");
});

it("is readable where nothing needs quotes", () => {
  expect(
    queryCommand("http://127.0.0.1:4040", { query: '{service_name="api"}', type: "cpu", from: "now-1h", to: "now", filters: "" }),
  ).toBe(
    `candela query top --server http://127.0.0.1:4040 --query '{service_name="api"}' --type cpu --from now-1h --to now`,
  );
});

it("asks with the filters that are switched on, in their order", () => {
  const selection = { query: "{}", type: "cpu", from: "1", to: "2", filters: "show_from=main\n!hide=a\nfocus=pkg:x y" };
  expect(queryCommand("http://h", selection, "tree")).toBe(
    "candela query tree --server http://h --query '{}' --type cpu --from 1 --to 2 --show-from main --focus 'pkg:x y'",
  );
});

it("names both sides of a comparison", () => {
  const command = diffCommand("http://h", {
    query: '{a="1"}',
    type: "cpu",
    from: "",
    to: "",
    filters: "",
    base: { query: "{}", from: 1.2, to: 2 },
    shown: { from: 2, to: 3 },
  });
  expect(command).toBe(`candela diff '{}@1..2' '{a="1"}@2..3' --server http://h --type cpu`);
});

it("compares as the screen does, below the same function", () => {
  const sides = { query: "{}", type: "cpu", from: "", to: "", base: { query: "{}", from: 1, to: 2 }, shown: { from: 2, to: 3 } };
  expect(diffCommand("http://h", { ...sides, filters: "hide=a", path: "main", normalization: "robust", fdr: "0.2" })).toBe(
    "candela diff '{}@1..2' '{}@2..3' --server http://h --type cpu --normalization robust --fdr 0.2 --hide a --path main",
  );
  expect(fileDiffCommand("a", "b", { type: "cpu", filters: "", path: "main", normalization: "absolute", fdr: "0.05" })).toBe(
    "candela diff a b --type cpu --normalization absolute --path main",
  );
});

it("tells services and values of labels over time", () => {
  const selection = { query: "{}", type: "cpu", from: "1", to: "2", filters: "hide=a" };
  expect(seriesCommand("http://h", selection, "pod")).toBe(
    "candela query series --server http://h --query '{}' --type cpu --from 1 --to 2 --group-by pod --hide a",
  );
});

it("asks for the subtree and the function that are looked at", () => {
  const selection = { query: "{}", type: "cpu", from: "1", to: "2", filters: "", path: "main\nrun task" };
  expect(queryCommand("http://a", selection, "tree")).toContain("--path main --path 'run task'");
  expect(queryCommand("http://a", selection, "callers", "fn:^a$")).toContain("candela query callers 'fn:^a$' --server");
});

it("is about a file where one is looked at", () => {
  const narrowed = { type: "cpu", filters: "hide=a b", path: "main\nrun" };
  expect(fileCommand("my file.pb.gz", narrowed, "tree")).toBe(
    "candela query tree 'my file.pb.gz' --type cpu --hide 'a b' --path main --path run",
  );
  expect(fileCommand("-x", { type: "cpu", filters: "" }, "callers", "fn:^f$")).toBe("candela query callers 'fn:^f$' ./-x --type cpu");
  expect(fileDiffCommand("a", "b", { type: "cpu", filters: "" })).toBe("candela diff a b --type cpu");
});
