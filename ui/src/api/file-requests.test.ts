import { afterEach, expect, it, vi } from "vitest";
import { FileRequests, FILE_NOT_OPEN, type AskedFiles } from "./file-requests.ts";

const FILE = { id: "a".repeat(32), name: "after.pb.gz" };
const BASE = { id: "b".repeat(32), name: "before.pb.gz" };

interface Sent {
  method: string;
  url: URL;
  body: unknown;
}

/** A server that holds the files with these ids, and no others. */
function server(held: Set<string>, options: { keeps: boolean } = { keeps: true }): Sent[] {
  const sent: Sent[] = [];
  vi.stubGlobal("fetch", async (address: string, { method = "GET", body }: RequestInit) => {
    const url = new URL(address);
    sent.push({ method, url, body });
    await Promise.resolve();
    if (url.pathname === "/api/v1/files") {
      if (options.keeps) held.add(await (body as Blob).text());
      return Response.json({});
    }
    const ids = ["file", "base_file"].flatMap((name) => url.searchParams.get(name) ?? []);
    if (body === undefined && method === "POST" && ids.some((id) => !held.has(id)))
      return Response.json({ code: "file_not_held", message: "gone", hint: "" }, { status: 404 });
    return Response.json({ answer: url.pathname });
  });
  return sent;
}

/** The content of each file is its id: what the server then holds. */
function requests(asked: AskedFiles | undefined, open: string[]): FileRequests {
  const contentOf = (id: string): Blob | undefined => (open.includes(id) ? new Blob([id]) : undefined);
  return new FileRequests("http://page.test/prefix/../", () => asked, contentOf);
}

const signal = new AbortController().signal;

afterEach(() => vi.unstubAllGlobals());

it("asks the store where no file is looked at", async () => {
  const sent = server(new Set());
  await requests(undefined, []).json("top", [["type", "cpu"]], signal);
  expect(sent.map(({ method, url }) => `${method} ${url.pathname}${url.search}`)).toEqual(["GET /api/v1/top?type=cpu"]);
});

it("asks about a file by its id, and sends it when it is not held", async () => {
  const sent = server(new Set());
  const files = requests({ file: FILE, base: undefined }, [FILE.id]);
  await Promise.all([files.json("top", [["type", "cpu"]], signal), files.json("series", [], signal)]);
  const paths = sent.map(({ method, url }) => `${method} ${url.pathname}`);
  expect(paths.filter((path) => path === "POST /api/v1/files")).toHaveLength(1);
  expect(sent.at(-1)?.url.searchParams.get("file")).toBe(FILE.id);
  sent.length = 0;
  await files.json("top", [], signal);
  expect(sent).toHaveLength(1);
  expect(sent[0]?.body).toBeUndefined();
});

it("sends a file with the question where the server does not keep it", async () => {
  const sent = server(new Set(), { keeps: false });
  const files = requests({ file: FILE, base: BASE }, [FILE.id, BASE.id]);
  await files.json("diff", [["limit", "1"]], signal);
  const last = sent.at(-1) as Sent;
  expect(last.url.search).toBe("?limit=1");
  expect([...(last.body as FormData).keys()]).toEqual(["file", "base_file"]);
});

it("names the other file in a comparison alone", async () => {
  const sent = server(new Set([FILE.id, BASE.id]));
  const files = requests({ file: FILE, base: BASE }, [FILE.id, BASE.id]);
  await files.json("diff", [], signal);
  await files.json("types", [], signal);
  expect(sent.map(({ url }) => url.searchParams.get("base_file"))).toEqual([BASE.id, null]);
});

it("says which file is not open, and asks nobody", async () => {
  const sent = server(new Set([FILE.id]));
  const failed = requests({ file: FILE, base: undefined }, []).json("top", [], signal);
  await expect(failed).rejects.toMatchObject({ code: FILE_NOT_OPEN, message: expect.stringContaining("after.pb.gz") });
  expect(sent).toEqual([]);
});

it("leaves to the server what is about the server", async () => {
  const sent = server(new Set());
  await requests({ file: FILE, base: undefined }, [FILE.id]).json("status", [], signal);
  expect(sent.map(({ method, url }) => `${method} ${url.pathname}`)).toEqual(["GET /api/v1/status"]);
});

/** What a page may also ask while a file is looked at, because it is of the server: its reader, its notes, its saved views. */
const OF_THE_SERVER = new Set(["annotations", "session", "status", "views"]);

it("asks of the file whatever a pane asks for", async () => {
  const texts = import.meta.glob<string>(["./client.ts", "../views/**/*.{ts,tsx}"], { query: "?raw", import: "default", eager: true });
  const calls = Object.values(texts).join("").matchAll(/\brequests\s*\.(?:json(?:<[^(]*>)?|get)\(\s*"([\w-]+)"/g);
  const routes = [...new Set([...calls].map(([, route]) => route))];
  expect(routes).toEqual(expect.arrayContaining(["callers", "chart", "diff", "flamegraph", "heatmap"]));
  const sent = server(new Set([FILE.id]));
  const files = requests({ file: FILE, base: undefined }, [FILE.id]);
  await Promise.all(routes.map((route) => files.get(route, [], signal)));
  const paths = routes.map((route) => (OF_THE_SERVER.has(route) ? route : `files/${route}`));
  expect(sent.map(({ url }) => url.pathname)).toEqual(paths.map((path) => `/api/v1/${path}`));
});
