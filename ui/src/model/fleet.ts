// The fleet: the document that says which daemons run on every node, its versions, what a check says of a text, and the nodes.

import type { DocumentPath, TextPosition } from "./document-place.ts";
import { formatCount } from "./units.ts";

/** Before the first version it is 0, and nobody's. */
export interface VersionEntry {
  version: number;
  author: string | null;
  time: number | null;
  rolled_back_to: number | null;
}

export interface DocumentVersion extends VersionEntry {
  document: object;
}

/** A problem, or a note: then with its kind. */
export interface Remark {
  path: DocumentPath;
  position: TextPosition | null;
  /** All of it in one line. */
  text: string;
  kind?: "adjustment" | "warning";
}

/** What is wrong with a text, and what applying it would change of `version`. */
export interface DocumentCheck {
  version: number;
  problems: Remark[];
  notes: Remark[];
  diff: unknown[];
  diff_text: string;
}

export interface FleetNode {
  node: string;
  /** The one daemon that its agent is, where each has an agent of its own. */
  daemon?: string | null;
  /** It listens now. */
  connected: boolean;
  seen: number;
  /** Null before its first report. */
  version: number | null;
  daemons: Daemon[];
}

export interface Daemon {
  id: string;
  state: string;
  last_error: string | null;
  uploaded: number;
  retained: number;
  dropped: number;
  /** Files that are in the store, too, and those that were to be. */
  stored?: number;
  not_stored?: number;
  /** What it says of itself, such as how its limits hold. */
  notes?: readonly string[];
  /** Since when it is in this state. */
  since: number | null;
}

export interface NodesAnswer {
  version: number;
  nodes: FleetNode[];
}

export interface SnapshotAnswer {
  triggered: number;
  results: { node: string; status: string; object_key: string | null; error: string | null }[];
  /** Nodes that are meant, and do not listen. */
  away: string[];
}

/** As it is edited. */
export function documentText(document: object): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** Shown where there is nothing yet: every key of it is worth a thought, none has to be looked up. */
export const EXAMPLE = documentText({
  observability_daemons: [
    {
      perf_collector: {
        perf_polling_frequency_hz: 99,
        call_graph: true,
        dump_duration_seconds: 60,
        export_to: "s3://profiles",
        bucket_subdirectory: "perf-data",
      },
    },
  ],
});

export interface DiffLine {
  kind: "place" | "removed" | "added";
  text: string;
}

const LINE_KINDS: Record<string, DiffLine["kind"]> = { "-": "removed", "+": "added" };

/** Line by line, as the command line prints it. */
export function diffLines(diffText: string): DiffLine[] {
  if (diffText === "") return [];
  return diffText.split("\n").map((text) => ({ kind: LINE_KINDS[text.charAt(0)] ?? "place", text }));
}

/** What a check comes to. */
export function checkSummary({ version, problems, diff }: DocumentCheck): string {
  if (problems.length > 0) return counted(problems.length, "problem");
  if (diff.length > 0) return counted(diff.length, "change");
  return version === 0 ? "Nothing to apply: the document is empty" : `Nothing to change: version ${version} says the same`;
}

function counted(count: number, what: string): string {
  return `${formatCount(count)} ${what}${count === 1 ? "" : "s"}`;
}

const IN_TROUBLE: ReadonlySet<string> = new Set(["backing_off", "failed"]);

export function isInTrouble({ state, last_error: error }: Daemon): boolean {
  return IN_TROUBLE.has(state) || error !== null;
}

/** Those to look at first: daemons that do not do what they should, then nodes that are away, then those with another version. */
export function nodesByNeed({ version, nodes }: NodesAnswer): FleetNode[] {
  const need = (node: FleetNode): number => {
    if (node.daemons.some(isInTrouble)) return 0;
    if (!node.connected) return 1;
    return node.version === version ? 3 : 2;
  };
  return nodes.toSorted((left, right) => need(left) - need(right) || left.node.localeCompare(right.node, "en"));
}

/** `2 running, 1 backing off`. */
export function daemonStates(daemons: readonly Daemon[]): string {
  const counts = new Map<string, number>();
  for (const { state } of daemons) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].map(([state, count]) => `${count} ${state.replaceAll("_", " ")}`).join(", ");
}

/** `12 uploaded, 3 kept`, and what of the store and of losses there is. */
export function daemonCounts({ uploaded, retained, dropped, stored = 0, not_stored: notStored = 0 }: Daemon): string {
  const further: [number, string][] = [
    [stored, "in the store"],
    [notStored, "not in the store"],
    [dropped, "dropped"],
  ];
  const counts = [`${formatCount(uploaded)} uploaded`, `${formatCount(retained)} kept`];
  for (const [count, what] of further) if (count > 0) counts.push(`${formatCount(count)} ${what}`);
  return counts.join(", ");
}
