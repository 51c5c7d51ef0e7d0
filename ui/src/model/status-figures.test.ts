import { describe, expect, it } from "vitest";
import { agentCpu, agentRate, ago, problemsOf } from "./status-figures.ts";

describe("what an agent costs", () => {
  it("is a part of a core, and a rate that its budget may lower", () => {
    expect(agentCpu({ cost: { cpu_ppm: 4002 } })).toBe("0.40 % of a core");
    expect(agentCpu({})).toBeUndefined();
    expect(agentRate({ cost: { rate_millihertz: 9500, configured_rate_millihertz: 19_000 } })).toBe("9.5 of 19 Hz");
    expect(agentRate({ cost: { rate_millihertz: 19_000, configured_rate_millihertz: 19_000 } })).toBe("19 Hz");
  });
});

describe("times since", () => {
  it("are told as a reader would", () => {
    expect(ago(100_000, 105_000)).toBe("just now");
    expect(ago(0, 190_000)).toBe("3 min 10 s ago");
  });
});

describe("problems", () => {
  it("come with a command, data loss first", () => {
    const problems = problemsOf({
      storage: { last_flush_error: "disk full" },
      agents: [{ host: "web-1", is_stale: true, missing: [{ what: "lock", reason: "no BTF" }] }],
    });
    expect(problems.map(({ command }) => command)).toEqual(["df -h", "systemctl status candela-agent", "candela doctor"]);
    expect(problemsOf({ agents: [{ host: "web-1" }] })).toEqual([]);
    expect(problemsOf({})[0].text).toContain("No agent");
  });
});
