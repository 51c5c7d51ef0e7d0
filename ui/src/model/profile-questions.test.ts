import { describe, expect, it } from "vitest";
import { answeredQuestions, PROFILE_QUESTIONS } from "./profile-questions.ts";
import type { ProfileType } from "./profile-type.ts";

const LOCK: ProfileType = {
  id: "mutex:delay:nanoseconds:contentions:count",
  name: "mutex",
  sample_type: "delay",
  sample_unit: "nanoseconds",
  period_type: "contentions",
  period_unit: "count",
  short: "lock",
};

describe("questions", () => {
  it("that can be answered come first, with their type", () => {
    const [first, second] = answeredQuestions([LOCK]);
    expect([first.question.type, first.found?.id]).toEqual(["lock", LOCK.id]);
    expect(second.found).toBeUndefined();
  });

  it("are each of another type", () => {
    expect(new Set(PROFILE_QUESTIONS.map(({ type }) => type)).size).toBe(PROFILE_QUESTIONS.length);
    expect(answeredQuestions([])).toHaveLength(PROFILE_QUESTIONS.length);
  });
});
