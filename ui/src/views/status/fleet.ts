// What the fleet is at, which change of its document is open, and snapshots of all nodes.

import { computed, signal } from "@preact/signals";
import type { NodesAnswer, SnapshotAnswer, VersionEntry } from "../../model/fleet.ts";
import { Loader } from "../loader.ts";
import { refusal } from "../notes.ts";
import { session } from "../session.ts";
import { requests } from "../store.ts";
import { DocumentChange, PERSISTENCE, readVersion } from "./document-change.ts";

interface FleetState {
  nodes: NodesAnswer;
  /** The latest first; none before the first document. */
  versions: VersionEntry[];
}

const loader = new Loader<FleetState>("the fleet");
export const fleet = loader.state;

export function loadFleet(): void {
  const { data: known, loading } = fleet.peek();
  // An answer that takes longer than the pace is waited for.
  if (loading && known) return;
  void loader.load("", async (abort) => {
    const nodes = await requests.json<NodesAnswer>("fleet/nodes", [], abort);
    if (known && (known.versions[0]?.version ?? 0) === nodes.version) return { nodes, versions: known.versions };
    const { versions } = await requests.json<{ versions: VersionEntry[] }>(`${PERSISTENCE}/history`, [], abort);
    return { nodes, versions };
  });
}

// Agents have the right to write, and none of them may tell the others what to run: it takes more.
export const mayAdminister = computed(() => session.value?.rights?.includes("admin") ?? false);

export const whyNot = computed(() => {
  // Until the server has said who asks, nothing is said of him.
  if (!session.value || mayAdminister.value) return undefined;
  const { name, rights } = session.value;
  return `Changing the fleet takes the right admin; ${rights?.length ? `${name} has ${rights.join(" and ")}` : "nobody is signed in"}.`;
});

// === the change of the document that is open ===

export const openChange = signal<DocumentChange | undefined>(undefined);
/** What was typed and neither applied nor taken back: closing the sheet loses nothing. */
export const draft = signal<DocumentChange | undefined>(undefined);
/** Why nothing could be opened. */
export const openError = signal<string | undefined>(undefined);
let opening = new AbortController();

export function edit(): Promise<void> {
  return open(async (abort) => draft.peek() ?? new DocumentChange(await readVersion(undefined, abort)));
}

export function rollBack(to: number): Promise<void> {
  return open(async (abort) => {
    const [base, old] = await Promise.all([readVersion(undefined, abort), readVersion(to, abort)]);
    return new DocumentChange(base, old);
  });
}

/** Of two that are asked for the later one is opened. */
async function open(read: (abort: AbortSignal) => Promise<DocumentChange>): Promise<void> {
  opening.abort();
  opening = new AbortController();
  const { signal: abort } = opening;
  openError.value = undefined;
  try {
    const change = await read(abort);
    if (abort.aborted) return;
    openChange.value = change;
    void change.checkNow();
  } catch (error) {
    if (!abort.aborted) openError.value = refusal(error);
  }
}

export function closeChange(): void {
  const closed = openChange.peek();
  openChange.value = undefined;
  if (!closed) return;
  closed.rest();
  if (closed.rolledBackTo === undefined) draft.value = closed.isChanged ? closed : undefined;
  loadFleet();
}

// === snapshots ===

const snapshotLoader = new Loader<SnapshotAnswer>("the snapshots of all nodes");
export const snapshot = snapshotLoader.state;
/** Until then there is nothing to wait for. */
export const isSnapshotAsked = signal(false);

export function takeSnapshot(): void {
  if (isSnapshotAsked.peek() && snapshot.peek().loading) return;
  isSnapshotAsked.value = true;
  const init = { method: "POST", body: "{}", headers: { "content-type": "application/json" } };
  void snapshotLoader.load("", async (abort) => (await requests.send(init, "fleet/snapshot", [], abort)).json() as Promise<SnapshotAnswer>);
}
