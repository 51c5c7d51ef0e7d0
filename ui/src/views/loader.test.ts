import { expect, it } from "vitest";
import { ApiError, UNREACHABLE } from "../api/client.ts";
import { Loader } from "./loader.ts";

const away = (): Promise<never> => Promise.reject(new ApiError(UNREACHABLE, "away", ""));
const refused = (): Promise<never> => Promise.reject(new ApiError("bad_selector", "no", "", 400));
const after = <T>(answer: T): (() => Promise<T>) => () => Promise.resolve(answer);

it("marks the answer to another question until the new one is there", async () => {
  const loader = new Loader<string>();
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
  const loader = new Loader<string>();
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
  const loader = new Loader<string>();
  const underWay = loader.load("a", after("of a"));
  loader.fail("b", new ApiError("bad_time", "from is no time", ""));
  await underWay;
  expect(loader.state.value).toMatchObject({ data: undefined, error: { code: "bad_time" }, loading: false });
});
