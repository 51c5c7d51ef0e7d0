import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { FakePage } from "../fake-page.ts";

const VALUES = { self: 3, total: 3 };
const SIDE = { query: "{}", from: 0, to: 1000, total: 3, samples: 3 };
const ANSWER = {
  unit: "bytes",
  before: SIDE,
  after: SIDE,
  functions: [{ name: "work", file: "", mapping: "", kind: "native", before: VALUES, after: VALUES }],
  tree: {
    nodes: 1,
    pruned: 0,
    frames: [{ name: "total", file: "", mapping: "", kind: "native", line: 0 }],
    frame: [0],
    depth: [0],
    subtree_end: [1],
    before_total: [3],
    before_self: [3],
    after_total: [3],
    after_self: [3],
  },
};

async function comparing() {
  const page = new FakePage("?v=1&screen=compare");
  page.answers.set("diff", () => ANSWER);
  const store = await import("../store.ts");
  const { diffSource } = await import("./diff-source.ts");
  return { page, store, diffSource, shown: await import("./compared.ts") };
}

const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

beforeEach(() => {
  vi.resetModules();
  vi.useFakeTimers();
});

afterEach(() => {
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("asks once for tree and table, and anew for what was given up", async () => {
  const { page, store, diffSource } = await comparing();
  const asked = store.selection.peek();
  const [first, second] = [new AbortController(), new AbortController()];
  page.faults.set("diff", "slow");
  const givenUp = [diffSource.flameGraph(asked, undefined, first.signal), diffSource.top(asked, "self", first.signal)];
  expect(page.asked("diff")).toHaveLength(1);
  page.faults.clear();
  first.abort();
  const answers = Promise.all([diffSource.flameGraph(asked, undefined, second.signal), diffSource.top(asked, "self", second.signal)]);
  expect(page.asked("diff")).toHaveLength(2);
  const [tree, top] = await answers;
  expect([tree.rootTotal, top.functions[0].name]).toEqual([3, "work"]);
  expect((await Promise.allSettled(givenUp)).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
});

it("leaves nothing of a comparison when the next is refused", async () => {
  const { page, store, diffSource, shown } = await comparing();
  store.pictureSource.value = diffSource;
  store.start();
  await settled();
  expect(shown.comparedFunctions.value.map(({ name }) => name)).toEqual(["work"]);
  expect(shown.sides.value).toMatchObject({ unit: "bytes", after: { total: 3 } });
  page.faults.set("diff", 400);
  store.update({ baseQuery: "{broken" });
  await settled();
  expect([shown.comparedFunctions.value, shown.sides.value, shown.compared.value]).toEqual([[], undefined, undefined]);
});
