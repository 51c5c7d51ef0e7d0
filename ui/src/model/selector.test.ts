import { describe, expect, it } from "vitest";
import { formatSelector, parseSelector, selectsAll, selectsEveryService, serviceOf, withService } from "./selector.ts";

const one = (label: string, operator: string, value: string) => [{ label, operator, value }];

describe("selectors", () => {
  it.each([
    "{}",
    '{service_name="checkout"}',
    '{service_name="checkout", host=~"web-.*", region!="eu", zone!~"x"}',
    '{path="a\\"b\\\\c,}"}',
    '{k8s.pod:name/x-y="p"}',
    '{"a b"="\\n\\t\\r"}',
    '{a="\u0001Ω"}',
  ])("round trip of %s", (text) => {
    const parsed = parseSelector(text);
    expect(parsed).toBeDefined();
    expect(formatSelector(parsed ?? [])).toBe(text);
  });

  it.each([
    [' { service_name = "a" , } ', one("service_name", "=", "a")],
    ['{"k8s.pod"="p"}', one("k8s.pod", "=", "p")],
    ["{'k8s.pod'='p'}", one("k8s.pod", "=", "p")],
    ["{host='a\"b'}", one("host", "=", 'a"b')],
    ['{pod=~"web-\\d+\\.x"}', one("pod", "=~", "web-\\d+\\.x")],
    ["{pod=~`web-\\d+\\\"`}", one("pod", "=~", 'web-\\d+\\"')],
    ['{k8s:pod!~"p"}', one("k8s:pod", "!~", "p")],
    ['{größe="1"}', one("größe", "=", "1")],
    ["", []],
    ["  ", []],
  ])("reads %j as the server does", (text, expected) => expect(parseSelector(text)).toEqual(expected));

  it.each([
    "{service_name=checkout}",
    "{a}",
    '{a="b" c="d"}',
    '{a="b}',
    '{a="b\\',
    '{a=="b"}',
    '{a="b"} x',
    '{,a="b"}',
    'host="a"',
    '{`a`="b"}',
  ])("does not claim to understand %s", (text) => {
    expect(parseSelector(text)).toBeUndefined();
  });

  it("changes the service and leaves the rest", () => {
    expect(withService('{host="a", service_name=~"x.*"}', "checkout")).toBe('{service_name="checkout", host="a"}');
    expect(withService('{service_name="checkout", host="a"}', undefined)).toBe('{host="a"}');
    expect(withService('{pod=~"web-\\d+"}', "checkout")).toBe('{service_name="checkout", pod=~"web-\\\\d+"}');
    expect(serviceOf('{service_name="checkout"}')).toBe("checkout");
    expect(serviceOf('{service_name=~"check.*"}')).toBeUndefined();
  });

  it("does not rewrite what it does not understand", () => {
    expect(withService("{broken", "checkout")).toBeUndefined();
    expect(withService("{broken", undefined)).toBeUndefined();
  });

  it("knows what selects everything", () => {
    expect([selectsAll("{}"), selectsAll(" "), selectsAll('{service_name=~"x.*"}'), selectsAll("{")]).toEqual([
      true,
      true,
      false,
      false,
    ]);
    const open = ['{host="a"}', "{}", '{service_name=~"x.*"}', '{service_name="x"}', "{"].map(selectsEveryService);
    expect(open).toEqual([true, true, false, false, false]);
  });
});
