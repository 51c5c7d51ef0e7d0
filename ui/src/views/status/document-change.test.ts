import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { DocumentVersion, Remark } from "../../model/fleet.ts";
import { FakePage } from "../fake-page.ts";

interface Sent {
  what: string;
  body: string;
  ifMatch: string | undefined;
}

/** A server with one document, which others change, too. */
class FakeFleet {
  readonly page = new FakePage("?v=1&live=0&screen=status");
  readonly sent: Sent[] = [];
  versions: DocumentVersion[] = [];
  rights = ["read", "write", "admin"];

  constructor() {
    const { answers } = this.page;
    answers.set("session", () => ({ name: "ann", rights: this.rights }));
    answers.set("fleet/nodes", () => ({ version: this.current.version, nodes: [] }));
    answers.set("fleet/persistence/history", () => ({ versions: this.versions.toReversed() }));
    answers.set("fleet/persistence", (_, init) => (init.method === "PUT" ? this.#change(init, "PUT", String(init.body)) : this.current));
    answers.set("fleet/persistence/versions/1", () => this.versions[0] ?? {});
    answers.set("fleet/persistence/rollback", (_, init) => this.#change(init, "rollback", JSON.stringify(this.versions[0]?.document)));
    answers.set("fleet/persistence/check", (_, init) => this.#check(String(init.body)));
  }

  get current(): DocumentVersion {
    return this.versions.at(-1) ?? { version: 0, author: null, time: null, rolled_back_to: null, document: {} };
  }

  apply(author: string, document: object): DocumentVersion {
    const version = { version: this.versions.length + 1, author, time: 1e12, rolled_back_to: null, document };
    this.versions.push(version);
    return version;
  }

  #check(body: string) {
    this.sent.push({ what: "check", body, ifMatch: undefined });
    const problems: Remark[] = body.includes("ftp") ? [{ path: ["export_to"], position: null, text: "export_to: is wrong" }] : [];
    const isSame = problems.length > 0 || JSON.stringify(JSON.parse(body)) === JSON.stringify(this.current.document);
    return { version: this.current.version, problems, notes: [], diff: isSame ? [] : [{}], diff_text: isSame ? "" : "@ []" };
  }

  #change({ headers }: RequestInit, what: string, body: string): object {
    const ifMatch = new Headers(headers).get("if-match") ?? undefined;
    this.sent.push({ what, body, ifMatch });
    if (ifMatch === `"${this.current.version}"`) return this.apply("ann", JSON.parse(body) as object);
    return Response.json({ code: "version_conflict", message: "bob was quicker" }, { status: 409 });
  }
}

async function open(fake: FakeFleet) {
  const session = await import("../session.ts");
  const fleet = await import("./fleet.ts");
  session.followSession();
  fleet.loadFleet();
  const edit = async () => {
    await fleet.edit();
    await vi.advanceTimersByTimeAsync(0);
    const change = fleet.openChange.peek();
    if (!change) throw new Error(fleet.openError.peek());
    return change;
  };
  const type = async (text: string): Promise<void> => {
    fleet.openChange.peek()?.type(text);
    await vi.advanceTimersByTimeAsync(300);
  };
  const asked = (what: string): Sent[] => fake.sent.filter((sent) => sent.what === what);
  await vi.advanceTimersByTimeAsync(0);
  return { fleet, edit, type, asked };
}

let fake: FakeFleet;

beforeEach(() => {
  vi.resetModules();
  vi.useFakeTimers();
  fake = new FakeFleet();
});

afterEach(() => {
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("the first document goes from a problem over a difference to version 1", async () => {
  const { fleet, edit, type, asked } = await open(fake);
  const change = await edit();
  expect(change.state.value.text).toBe("{}\n");
  expect([change.isChecked.value, change.isReady.value]).toEqual([true, false]);
  await type('{"export_to": "ftp://a"}');
  expect(change.check.value?.problems).toHaveLength(1);
  expect(change.isReady.value).toBe(false);
  await type('{"export_to": "s3://a"}');
  expect(change.isReady.value).toBe(true);
  expect(await change.apply()).toBe(true);
  expect(asked("PUT")).toEqual([{ what: "PUT", body: '{"export_to": "s3://a"}', ifMatch: '"0"' }]);
  fleet.closeChange();
  await vi.advanceTimersByTimeAsync(0);
  expect(fleet.fleet.value.data?.versions[0]).toMatchObject({ version: 1, author: "ann" });
  expect(fleet.draft.value).toBeUndefined();
});

it("what is checked is the text at the end of a pause, and nothing else may be applied", async () => {
  const { edit, asked } = await open(fake);
  const change = await edit();
  for (const text of ['{"a"', '{"a":', '{"a":1', '{"a":1}']) {
    change.type(text);
    vi.advanceTimersByTime(100);
  }
  await vi.advanceTimersByTimeAsync(300);
  expect(asked("check").map(({ body }) => body)).toEqual(["{}\n", '{"a":1}']);
  expect(change.isReady.value).toBe(true);
  change.type('{"a":2}');
  expect(change.isReady.value).toBe(false);
  expect(await change.apply()).toBe(false);
  expect(asked("PUT")).toEqual([]);
});

it("a check that is overtaken is dropped", async () => {
  const { edit, type } = await open(fake);
  const change = await edit();
  fake.page.faults.set("fleet/persistence/check", "slow");
  await type('{"a":1}');
  expect(change.isChecked.value).toBe(false);
  fake.page.faults.clear();
  await type('{"a":2}');
  expect(change.isReady.value).toBe(true);
});

it("who was quicker is told while one types, and neither text is lost", async () => {
  fake.apply("ann", { a: 1 });
  const { edit, type } = await open(fake);
  const change = await edit();
  fake.apply("bob", { a: 1, b: 1 });
  await type('{"a":2}');
  expect(change.state.value.conflict).toMatchObject({ version: 2, author: "bob" });
  expect(change.isReady.value).toBe(false);
  change.rebase(true);
  await vi.advanceTimersByTimeAsync(0);
  expect(JSON.parse(change.state.value.text)).toEqual({ a: 1, b: 1 });
  expect([change.state.value.base.version, change.state.value.conflict, change.state.value.setAside]).toEqual([2, undefined, '{"a":2}']);
  change.swapSetAside();
  await vi.advanceTimersByTimeAsync(0);
  expect(change.state.value.text).toBe('{"a":2}');
  expect(JSON.parse(change.state.value.setAside ?? "")).toEqual({ a: 1, b: 1 });
  expect(change.isReady.value).toBe(true);
});

it("who was quicker at the very end is told, too, and nothing is overwritten unseen", async () => {
  fake.apply("ann", { a: 1 });
  const { edit, type, asked } = await open(fake);
  const change = await edit();
  await type('{"a":2}');
  change.confirm(true);
  fake.apply("bob", { a: 1, b: 1 });
  expect(await change.apply()).toBe(false);
  expect(change.state.value.isConfirming).toBe(false);
  expect(change.state.value.refused).toBeUndefined();
  expect(change.state.value.conflict).toMatchObject({ version: 2, author: "bob" });
  expect(fake.current).toMatchObject({ version: 2, author: "bob" });
  change.rebase(false);
  await vi.advanceTimersByTimeAsync(0);
  expect(change.state.value.text).toBe('{"a":2}');
  expect(await change.apply()).toBe(true);
  expect(asked("PUT").map(({ ifMatch }) => ifMatch)).toEqual(['"1"', '"2"']);
});

it("a refusal is kept with the text, until it is changed", async () => {
  const { edit, type } = await open(fake);
  const change = await edit();
  await type('{"a":1}');
  fake.page.faults.set("fleet/persistence", 403);
  expect(await change.apply()).toBe(false);
  expect(change.state.value.refused).toMatchObject({ status: 403 });
  expect(change.state.value.text).toBe('{"a":1}');
  await type('{"a":2}');
  expect(change.state.value.refused).toBeUndefined();
});

it("closing keeps what was typed, and forgets what was not", async () => {
  const { fleet, edit, type } = await open(fake);
  const change = await edit();
  fleet.closeChange();
  expect(fleet.draft.value).toBeUndefined();
  await edit();
  await type('{"a":1}');
  const typed = fleet.openChange.value;
  fleet.closeChange();
  expect(fleet.openChange.value).toBeUndefined();
  expect(await edit()).toBe(typed);
  expect(typed).not.toBe(change);
});

it("an old version is applied once more, as a change of the current one", async () => {
  fake.apply("ann", { a: 1 });
  fake.apply("bob", { a: 2 });
  const { fleet, asked } = await open(fake);
  await fleet.rollBack(1);
  await vi.advanceTimersByTimeAsync(0);
  const change = fleet.openChange.peek();
  expect([change?.rolledBackTo, change?.state.value.base.version, change?.isReady.value]).toEqual([1, 2, true]);
  expect(await change?.apply()).toBe(true);
  expect(asked("rollback")).toMatchObject([{ ifMatch: '"2"' }]);
  expect(fake.page.asked("fleet/persistence/rollback").map(({ search }) => search)).toEqual(["?to=1"]);
  fleet.closeChange();
  expect(fleet.draft.value).toBeUndefined();
});

it("who may not change the fleet is told why", async () => {
  fake.rights = ["read", "write"];
  const { fleet } = await open(fake);
  expect(fleet.mayAdminister.value).toBe(false);
  expect(fleet.whyNot.value).toBe("Changing the fleet takes the right admin; ann has read and write.");
  fake.page.faults.set("fleet/persistence", 403);
  await fleet.edit();
  expect(fleet.openError.value).toBe("no");
  expect(fleet.openChange.value).toBeUndefined();
});

it("the past is asked for when there is a new version, and not at every look", async () => {
  fake.apply("ann", { a: 1 });
  const { fleet } = await open(fake);
  fleet.loadFleet();
  await vi.advanceTimersByTimeAsync(0);
  expect(fake.page.asked("fleet/nodes")).toHaveLength(2);
  expect(fake.page.asked("fleet/persistence/history")).toHaveLength(1);
  fake.apply("bob", { a: 2 });
  fleet.loadFleet();
  await vi.advanceTimersByTimeAsync(0);
  expect(fake.page.asked("fleet/persistence/history")).toHaveLength(2);
  expect(fleet.fleet.value.data?.versions.map(({ author }) => author)).toEqual(["bob", "ann"]);
});

it("a snapshot of all nodes is ordered once, and told node by node", async () => {
  const { fleet } = await open(fake);
  const results = [{ node: "node-1", status: "ok", object_key: "traces/node-1/a", error: null }];
  fake.page.answers.set("fleet/snapshot", () => ({ triggered: 1, results, away: ["node-2"] }));
  expect(fleet.isSnapshotAsked.value).toBe(false);
  fleet.takeSnapshot();
  fleet.takeSnapshot();
  await vi.advanceTimersByTimeAsync(0);
  expect(fake.page.asked("fleet/snapshot")).toHaveLength(1);
  expect(fleet.snapshot.value.data).toMatchObject({ results, away: ["node-2"] });
});
