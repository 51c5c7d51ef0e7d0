import { afterEach, expect, it, vi } from "vitest";
import { ApiError, Requests } from "./requests.ts";

afterEach(() => vi.unstubAllGlobals());

/** Requests of a page whose server answers all with one status, and what was sent. */
function answering(status: number) {
  const sent: { url: string; init: RequestInit }[] = [];
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    sent.push({ url, init });
    return Promise.resolve(Response.json({ code: "some", message: "why", hint: "what" }, { status }));
  });
  const requests = new Requests("http://page.test/prefix/?v=1");
  const refusals: ApiError[] = [];
  requests.onUnauthorized = (error) => void refusals.push(error);
  return { requests, sent, refusals };
}

it("says with each request that it is the window, below the page's own path", async () => {
  const { requests, sent } = answering(200);
  await requests.json("views", [], new AbortController().signal);
  await requests.change("POST", "annotations", [], { text: "a" });
  await requests.change("DELETE", "views", [["id", "a b"]]);
  expect(sent.map(({ url }) => url)).toEqual([
    "http://page.test/prefix/api/v1/views",
    "http://page.test/prefix/api/v1/annotations",
    "http://page.test/prefix/api/v1/views?id=a+b",
  ]);
  for (const { init } of sent) expect(init.headers).toMatchObject({ "x-candela-window": "1" });
  expect(sent[1].init).toMatchObject({ method: "POST", body: '{"text":"a"}', headers: { "content-type": "application/json" } });
});

it.each([
  [401, 1],
  [403, 0],
  [429, 0],
])("tells when the server wants to know who asks: %i, %i times", async (status, asked) => {
  const { requests, refusals } = answering(status);
  const answer = requests.json("labels", [], new AbortController().signal);
  await expect(answer).rejects.toMatchObject({ code: "some", message: "why", hint: "what", status });
  expect(refusals).toHaveLength(asked);
});
