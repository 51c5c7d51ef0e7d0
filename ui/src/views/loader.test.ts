import { expect, it } from "vitest";
import { ApiError, CANCELLED, UNREACHABLE } from "../api/client.ts";
import { nextLook } from "../state/polling.ts";
import { Loader } from "./loader.ts";
import { cancelAll, waits } from "./waits.ts";

const away = (): Promise<never> => Promise.reject(new ApiError(UNREACHABLE, "away", ""));
const refused = (): Promise<never> => Promise.reject(new ApiError("bad_selector", "no", "", 400));
const after = <T>(answer: T): (() => Promise<T>) => () => Promise.resolve(answer);

it("marks the answer to another question until the new one is there", async () => {
  const loader = new Loader<string>("it");
  await loader.load("a", after("of a"));
  const again = loader.load("a", after("of a again"));
  expect(loader.state.value).toMatchObject({ data: "of a", isStale: false, loading: true });
  await again;
  const other = loader.load("b", after("of b"));
  expect(loader.state.value).toMatchObject({ data: "of a again", isStale: true, loading: true });
  await other;
  expect(loader.state.value).toMatchObject({ data: "of b", isStale: false, loading: false });
});

it("keeps the picture while the server is away, but not below another heading", async () => {
  const loader = new Loader<string>("it");
  await loader.load("a", after("of a"));
  await loader.load("a", away);
  expect(loader.state.value).toMatchObject({ data: "of a", isStale: false });
  await loader.load("b", away);
  expect(loader.state.value.data).toBeUndefined();
  await loader.load("a", after("of a"));
  await loader.load("a", refused);
  expect(loader.state.value).toMatchObject({ data: undefined, error: { code: "bad_selector" } });
});

it("ends the load under way when it fails from outside", async () => {
  const loader = new Loader<string>("it");
  const underWay = loader.load("a", after("of a"));
  loader.fail("b", new ApiError("bad_time", "from is no time", ""));
  await underWay;
  expect(loader.state.value).toMatchObject({ data: undefined, error: { code: "bad_time" }, loading: false });
});

const never = (abort: AbortSignal): Promise<never> =>
  new Promise((_, reject) => abort.addEventListener("abort", () => reject(new Error("aborted"))));

it("says what it waits for, and ends when the reader does not want to", async () => {
  const loader = new Loader<string>("the line");
  let aborted = false;
  const underWay = loader.load("a", (abort) => {
    abort.addEventListener("abort", () => (aborted = true));
    return never(abort);
  });
  expect(waits.value).toMatchObject([{ what: "the line", isAsked: true }]);
  cancelAll();
  await underWay;
  expect(waits.value).toEqual([]);
  expect(aborted).toBe(true);
  const { error, data, loading } = loader.state.value;
  expect([error?.code, data, loading]).toEqual([CANCELLED, undefined, false]);
  // No later look asks by itself for what nobody wanted to wait for.
  const failure = { isUnreachable: false, status: error?.status ?? 0 };
  expect(nextLook({ isLive: true, isEmpty: false, failures: [failure], failuresInRow: 1 })).toBeUndefined();
});

it("keeps what it shows when a refresh is cancelled", async () => {
  const loader = new Loader<string>("the line");
  await loader.load("a", after("of a"));
  const refresh = loader.load("a", never);
  expect(waits.value).toMatchObject([{ isAsked: false }]);
  cancelAll();
  await refresh;
  expect(loader.state.value).toMatchObject({ data: "of a", error: undefined, loading: false, isStale: false });
});

it("waits once for a load that is overtaken", async () => {
  const loader = new Loader<string>("the line");
  const first = loader.load("a", never);
  const second = loader.load("b", after("of b"));
  expect(waits.value.length).toBe(1);
  await Promise.all([first, second]);
  expect(waits.value).toEqual([]);
  expect(loader.state.value.data).toBe("of b");
});
