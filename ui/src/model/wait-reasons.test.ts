import { expect, it } from "vitest";
import { parseTypeId } from "./profile-type.ts";
import { hasReasons, isWallTime, reasonMeaning, reasonPattern, reasonTitle, reasonToken } from "./wait-reasons.ts";

it("knows which types have reasons", () => {
  expect(hasReasons(parseTypeId("off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds"))).toBe(true);
  expect(hasReasons(parseTypeId("wall:wall:nanoseconds:wall:nanoseconds"))).toBe(true);
  expect(hasReasons(parseTypeId("process_cpu:cpu:nanoseconds:cpu:nanoseconds"))).toBe(false);
  expect(hasReasons(parseTypeId("off_cpu:switches:count:off_cpu:nanoseconds"))).toBe(false);
  expect(isWallTime(parseTypeId("off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds"))).toBe(false);
});

it("says a reason in words, and one that it does not know as it is", () => {
  expect(reasonTitle("futex")).toBe("locks");
  expect(reasonTitle("lunch")).toBe("lunch");
  expect(reasonTitle(undefined)).toBe("no reason known");
  expect(reasonMeaning("lunch")).toContain("lunch");
  expect([reasonToken("disk"), reasonToken("lunch"), reasonToken(undefined)]).toEqual([
    "--reason-disk",
    "--reason-other",
    "--reason-unknown",
  ]);
});

it("filters by exactly one reason, whatever characters it has", () => {
  expect(reasonPattern("disk")).toBe("off_cpu_reason=^disk$");
  expect(reasonPattern("a,b.c")).toBe(String.raw`off_cpu_reason=^a\,b\.c$`);
});
