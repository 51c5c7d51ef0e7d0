// The budgets U1–U5 and U7 of a page in headless Chromium: `node bench/browser.mjs --url http://127.0.0.1:4040/ [--nodes 1000000] [--comb]`.
// With --nodes the flame graph answer is replaced by a generated one of that size; everything else is what the server says.

import { createServer } from "node:http";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { runnerImport } from "vite";

const { values: options } = parseArgs({
  options: {
    url: { type: "string", default: "http://127.0.0.1:4040/" },
    nodes: { type: "string" },
    comb: { type: "boolean", default: false },
    chromium: { type: "string", default: "/usr/bin/chromium" },
  },
});

const MOVES = 180;
const { module: generator } = await runnerImport(new URL("generate.ts", import.meta.url).pathname);
const browser = await chromium.launch({
  executablePath: options.chromium,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic"],
});
const page = await browser.newPage({ viewport: { width: 1920, height: 1080 } });
const proxy = options.nodes ? await serveGenerated(Number(options.nodes)) : undefined;

await page.goto(new URL("?v=1&view=flame&live=0", proxy?.url ?? options.url).href);
await page.waitForFunction(() => performance.getEntriesByName("fg:first").length > 0, undefined, { timeout: 60_000 });
const figures = await page.evaluate(measure, MOVES);
await page.fill("[data-testid=search-input]", "function_(12|99)|main");
await page.waitForFunction(() => window.__perf.searches.length > 0);
figures.search_ms = await page.evaluate(() => window.__perf.searches.at(-1));
const session = await page.context().newCDPSession(page);
await session.send("HeapProfiler.collectGarbage");
const { usedSize, backingStorageSize = 0 } = await session.send("Runtime.getHeapUsage");
figures.bytes_per_node = Math.round((usedSize + backingStorageSize) / Math.max(1, figures.nodes));
await browser.close();
proxy?.server.close();
process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`);

/** Passes requests on to the real server, except for the flame graph. */
async function serveGenerated(nodes) {
  const tree = Buffer.from(
    options.comb ? generator.generateComb(700, Math.ceil(nodes / 700)) : generator.generateTree(nodes, 10_000, 1),
  );
  const server = createServer(async (request, response) => {
    if (request.url.includes("/api/v1/flamegraph")) return response.end(tree);
    const answer = await fetch(new URL(request.url, options.url));
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
    return response.end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return { server, url: `http://127.0.0.1:${server.address().port}/` };
}

/** Runs in the page: zooms in, pans and zooms out by wheel, one step a frame, then moves the pointer across the picture. */
async function measure(moves) {
  const view = document.querySelector("[data-testid=flamegraph]");
  const canvas = document.querySelector("[data-testid=flamegraph-canvas]");
  const area = canvas.getBoundingClientRect();
  const quantile = (values, share) =>
    [...values].toSorted((left, right) => left - right)[Math.min(values.length - 1, Math.floor(values.length * share))];
  const nextFrame = () => new Promise(requestAnimationFrame);
  const first = performance.getEntriesByName("fg:first")[0].startTime;

  window.__perf.clear();
  const frames = [];
  let before = await nextFrame();
  for (let move = 0; move < moves; move++) {
    const phase = Math.floor((3 * move) / moves);
    const wheel =
      phase === 1 ? { deltaX: move % 20 < 10 ? 40 : -40 } : { deltaY: phase === 0 ? -40 : 40, ctrlKey: true };
    const clientX = area.x + area.width * (0.3 + 0.2 * Math.sin(move / 10));
    view.dispatchEvent(
      new WheelEvent("wheel", { ...wheel, clientX, clientY: area.y + 60, bubbles: true, cancelable: true }),
    );
    const now = await nextFrame();
    frames.push(now - before);
    before = now;
  }
  const draws = window.__perf.draws.map(({ milliseconds }) => milliseconds);
  const boxes = Math.max(...window.__perf.draws.map((draw) => draw.boxes));

  window.__perf.clear();
  for (let move = 0; move < moves; move++) {
    canvas.dispatchEvent(
      new PointerEvent("pointermove", {
        clientX: area.x + ((move * 37) % area.width),
        clientY: area.y + ((move * 53) % 400),
        bubbles: true,
      }),
    );
  }
  return {
    nodes: window.__candela.flamegraph().nodes,
    first_paint_ms: performance.getEntriesByType("paint")[0]?.startTime,
    first_flame_graph_ms: first,
    move_frame_ms: { p50: quantile(frames, 0.5), p95: quantile(frames, 0.95) },
    move_script_ms: { p50: quantile(draws, 0.5), p95: quantile(draws, 0.95) },
    boxes_most: boxes,
    hit_ms: { p50: quantile(window.__perf.hits, 0.5), p95: quantile(window.__perf.hits, 0.95) },
    hover_ms: { p50: quantile(window.__perf.hovers, 0.5), p95: quantile(window.__perf.hovers, 0.95) },
  };
}
