import { expect, it } from "vitest";
import { labelParameters, serviceNameFor } from "./file-labels.ts";

it("takes labels with spaces or commas between them", () => {
  expect(labelParameters(" a=1, b=2  c ")).toEqual([
    ["label", "a=1"],
    ["label", "b=2"],
    ["label", "c"],
  ]);
  expect(labelParameters("")).toEqual([]);
});

it("suggests a service from the name of a file", () => {
  expect(serviceNameFor("checkout.cpu.pb.gz")).toBe("checkout.cpu");
  expect(serviceNameFor("perf.data")).toBe("perf");
  expect(serviceNameFor(".gz")).toBe(".gz");
  expect(serviceNameFor("profile")).toBe("profile");
});
