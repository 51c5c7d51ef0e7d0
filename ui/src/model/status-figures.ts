// What the status screen says in figures: agents' cost in words, and each problem with the command that helps.

import type { AgentEntry, StatusAnswer } from "../api/types.ts";
import { formatBytes, formatSeconds } from "./units.ts";

const PER_MILLION_TO_PERCENT = 1 / 10_000;

/** `0.42 % of a core`; `undefined` of agents that do not say. */
export function agentCpu({ cost }: AgentEntry): string | undefined {
  const share = cost?.cpu_ppm;
  return share === undefined ? undefined : `${(share * PER_MILLION_TO_PERCENT).toFixed(2)} % of a core`;
}

export function agentMemory({ cost }: AgentEntry): string | undefined {
  const bytes = cost?.resident_bytes;
  return bytes === undefined ? undefined : formatBytes(bytes);
}

/** `19 Hz`, or `10 of 19 Hz` where the budget allows no more. */
export function agentRate({ cost }: AgentEntry): string | undefined {
  const rate = cost?.rate_millihertz;
  const configured = cost?.configured_rate_millihertz;
  if (rate === undefined || configured === undefined || configured === 0) return undefined;
  return rate === configured ? `${rate / 1e3} Hz` : `${rate / 1e3} of ${configured / 1e3} Hz`;
}

/** `just now`, `45 s ago`, `3 min 10 s ago`. */
export function ago(milliseconds: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - milliseconds) / 1e3));
  return seconds < 15 ? "just now" : `${formatSeconds(seconds)} ago`;
}

export interface Problem {
  text: string;
  command: string;
}

/** What somebody should look at now, the gravest first. */
export function problemsOf({ storage = {}, agents = [], symbolization = {} }: StatusAnswer): Problem[] {
  const problems: Problem[] = [];
  const add = (isThere: unknown, text: string, command: string): void => {
    if (isThere) problems.push({ text, command });
  };
  add(storage.last_flush_error, `The newest data cannot be written: ${storage.last_flush_error}`, "df -h");
  add(storage.last_retention_error, `Old data cannot be deleted: ${storage.last_retention_error}`, "candela store verify");
  const damaged = storage.damaged_records ?? 0;
  add(damaged, `${damaged} records of the log are damaged on disk`, "candela store verify");
  const quarantined = storage.quarantined ?? [];
  add(quarantined.length, `${quarantined.length} blocks cannot be read: ${quarantined.join(", ")}`, "candela store verify");
  for (const { host = "?" } of agents.filter(({ is_stale: isStale }) => isStale))
    add(true, `The agent on ${host} is silent`, "systemctl status candela-agent");
  add(agents.length === 0, "No agent sends to this server", "sudo candela agent --server URL");
  for (const { host = "?", missing = [] } of agents)
    for (const { what, reason } of missing) add(true, `${what} is missing on ${host}: ${reason}`, "candela doctor");
  const nameless = symbolization.unsymbolized ?? 0;
  add(nameless, `${nameless} binaries have addresses without names`, "candela symbols list");
  add(symbolization.last_error, `Names could not be added: ${symbolization.last_error}`, "candela symbols list");
  return problems;
}
