import { describe, expect, it } from "vitest";
import { formatSelector, parseSelector, serviceOf, withService } from "./selector.ts";

describe("selectors", () => {
  it.each([
    "{}",
    '{service_name="checkout"}',
    '{service_name="checkout", host=~"web-.*", region!="eu"}',
    '{path="a\\"b\\\\c,}"}',
  ])("round trip of %s", (text) => {
    const parsed = parseSelector(text);
    expect(parsed).toBeDefined();
    expect(formatSelector(parsed ?? [])).toBe(text);
  });

  it("reads what people type", () => {
    expect(parseSelector(' { service_name = "a" , } ')).toEqual([{ label: "service_name", operator: "=", value: "a" }]);
    expect(parseSelector('host="a"')).toEqual([{ label: "host", operator: "=", value: "a" }]);
    expect(parseSelector('{"k8s.pod"="p"}')).toEqual([{ label: "k8s.pod", operator: "=", value: "p" }]);
  });

  it.each(["{service_name=checkout}", "{a}", '{a="b" c="d"}', '{a="b}'])("does not claim to understand %s", (text) => {
    expect(parseSelector(text)).toBeUndefined();
  });

  it("changes the service and leaves the rest", () => {
    expect(withService('{host="a", service_name=~"x.*"}', "checkout")).toBe('{service_name="checkout", host="a"}');
    expect(withService('{service_name="checkout", host="a"}', undefined)).toBe('{host="a"}');
    expect(withService("{broken", "checkout")).toBe('{service_name="checkout"}');
    expect(serviceOf('{service_name="checkout"}')).toBe("checkout");
    expect(serviceOf('{service_name=~"check.*"}')).toBeUndefined();
  });
});
