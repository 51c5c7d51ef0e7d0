import { describe, expect, it } from "vitest";
import { hashString } from "./hash.ts";
import { packageOf, packagePathOf, shortNameOf } from "./names.ts";
import packages from "./packages.json" with { type: "json" };

describe("packageOf", () => {
  it.each([
    ["encoding/json.(*Decoder).Decode", "decode.go", "/app", "go", "encoding/json"],
    ["github.com/jackc/pgx/v5.(*Conn).Query", "", "/app", "go", "github.com/jackc/pgx/v5"],
    ["main.handle(a/b)", "", "/app", "go", "main"],
    ["serde_json::de::from_str", "", "/app", "rust", "serde_json"],
    ["<alloc::vec::Vec<T> as core::ops::Drop>::drop", "vec.rs", "/app", "rust", "alloc"],
    ["<&mut dyn core::fmt::Write as core::fmt::Write>::write_str", "", "/app", "rust", "core"],
    ["std::vector<int, std::allocator<int>>::push_back(int&&)", "", "/app", "native", "std"],
    ["qsort_r", "/src/stdlib/msort.c", "/usr/lib/libc.so.6", "native", "/src/stdlib"],
    ["qsort_r", "", "/usr/lib/libc.so.6", "native", "libc.so.6"],
    ["com.acme.shop.Cart.total", "", "", "jvm", "com.acme.shop"],
    ["do_syscall_64", "", "[kernel]", "kernel", "kernel"],
  ])("%s", (name, file, mapping, kind, expected) => {
    expect(packageOf(name, file, mapping, kind)).toBe(expected);
  });

  // Pictures that the server draws have these colours, too: a test of candela-formats reads the same cases.
  it.each(packages)("$name has a hue that the server gives it, too", ({ name, file, mapping, kind, package: expected, hue }) => {
    expect(packageOf(name, file, mapping, kind)).toBe(expected);
    expect(hashString(expected) % 12).toBe(hue);
  });
});

describe("packagePathOf", () => {
  // As candela-model has it for filters.
  it.each([
    ["net/http.(*Server).Serve", "net/http"],
    ["github.com/a/b.v2.Run", "github.com/a/b"],
    ["runtime.mallocgc", "runtime"],
    ["std::io::Read::read", "std::io::Read"],
    ["std::vector<a::b>::push", "std"],
    ["java.util.List.add", "java.util.List"],
    ["main.Map[go.shape.int]", "main"],
    ["<alloc::vec::Vec<T> as core::ops::Drop>::drop", "alloc::vec"],
    ["<&mut std::io::Stdin as std::io::Read>::read", "std::io"],
    ["<module>", ""],
    ["malloc", ""],
  ])("%s", (name, expected) => {
    expect(packagePathOf(name)).toBe(expected);
  });
});

describe("shortNameOf", () => {
  it.each([
    ["malloc", "malloc"],
    ["encoding/json.(*Decoder).Decode", "json.(*Decoder).Decode"],
    ["tokio::runtime::task::core::poll", "core::poll"],
    ["<json::Decoder<R> as core::iter::Iterator>::next", "Decoder::next"],
    ["std::vector<int, std::allocator<int>>::push_back(int&&)", "vector::push_back"],
    ["(anonymous namespace)::Cache::get(std::string const&)", "Cache::get"],
    ["ns::Less::operator()(int, int) const", "Less::operator()"],
    ["ns::Iterator::operator->() const", "Iterator::operator->"],
    ["std::rt::lang_start::{{closure}}", "lang_start::{{closure}}"],
  ])("%s", (name, expected) => {
    expect(shortNameOf(name)).toBe(expected);
  });
});
