import { describe, expect, it } from "vitest";
import {
  exactPattern,
  filterParameters,
  libraryCollapse,
  movedFilter,
  packageCollapse,
  parseFilters,
  printFilters,
  recursionCollapse,
  withFilter,
  withFilters,
} from "./filters.ts";

describe("filters", () => {
  it("come back from their text in their order", () => {
    const text = "focus=pkg:^net/\n!hide=runtime=.*\nignore=kind:kernel";
    expect(printFilters(parseFilters(text))).toBe(text);
    expect(parseFilters(text)[1]).toEqual({ kind: "hide", pattern: "runtime=.*", isOff: true });
  });

  it("leaves out what is no filter", () => {
    expect(parseFilters("nothing=x\nfocus\nfocus=\n\nshow_from=main")).toEqual([
      { kind: "show_from", pattern: "main", isOff: false },
    ]);
  });

  it("asks only for those that are switched on", () => {
    expect(filterParameters(parseFilters("hide=a\n!focus=b\nhide=c"))).toEqual([
      ["hide", "a"],
      ["hide", "c"],
    ]);
  });

  it("matches a name and nothing else", () => {
    expect(exactPattern("fn", "main.(*T).run[x]")).toBe(String.raw`fn:^main\.\(\*T\)\.run\[x\]$`);
  });

  it("are added at the end, once", () => {
    expect(withFilter("hide=a\nfocus=b", "hide", "a")).toBe("focus=b\nhide=a");
    expect(withFilter("", "focus", "pkg:x")).toBe("focus=pkg:x");
  });

  it("are moved", () => {
    expect(movedFilter("hide=a\nfocus=b\nignore=c", 0, 2)).toBe("focus=b\nignore=c\nhide=a");
    expect(movedFilter("hide=a\nfocus=b", 1, -1)).toBe("focus=b\nhide=a");
    expect(movedFilter("hide=a", 3, 0)).toBe("hide=a");
  });
});

describe("what a frame is folded into", () => {
  it.each([
    ["tokio::runtime::task::poll", "rust", "tokio", "pkg:^(tokio)(::|$)"],
    ["<&mut std::io::Stdin as std::io::Read>::read", "rust", "std", "pkg:^(std)(::|$)"],
    ["github.com/acme/shop.(*Cart).Add", "go", "github.com/acme/shop", String.raw`pkg:^github\.com/acme/shop$`],
    ["main.main", "go", "main", "pkg:^main$"],
    ["java.util.concurrent.FutureTask.run", "jvm", "java.util.concurrent", String.raw`pkg:^(java\.util\.concurrent)(\.[^.]+)?$`],
    ["app.handlers.order", "cpython", "app.handlers", String.raw`pkg:^app\.handlers$`],
    ["__x64_sys_read", "kernel", "the kernel", "kind:^kernel$"],
  ])("is the package of %s", (name, kind, what, pattern) => expect(packageCollapse({ name, kind })).toEqual({ what, pattern }));

  it.each([
    ["malloc", "native"],
    ["<module>", "cpython"],
    ["Main.main", "jvm"],
    ["(anonymous namespace)::run", "native"],
  ])("has no package in %s", (name, kind) => expect(packageCollapse({ name, kind })).toBeUndefined());

  it("is its library, or where it recurs", () => {
    expect(libraryCollapse("/usr/lib/libc.so.6")).toEqual({ what: "libc.so.6", pattern: String.raw`bin:^/usr/lib/libc\.so\.6$` });
    expect(libraryCollapse("")).toBeUndefined();
    expect(recursionCollapse("walk(int)")).toBe(String.raw`recursion:fn:^walk\(int\)$`);
  });

  it("is a chip like the others", () => {
    const text = withFilters("hide=a", [["collapse", "recursion"], ["collapse", "bin:."]]);
    expect(filterParameters(parseFilters(text))).toEqual([["hide", "a"], ["collapse", "recursion"], ["collapse", "bin:."]]);
  });
});
