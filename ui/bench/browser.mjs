// The budgets U1–U7 of a page in headless Chromium: `node bench/browser.mjs --url http://127.0.0.1:4040/ [--nodes 1000000] [--comb] [--only WHAT]`.
// With --nodes the flame graph answer is replaced by a generated one of that size; everything else is what the server says.
// --only paint|focus|cycles measures what the others would disturb.

import { createServer } from "node:http";
import { parseArgs } from "node:util";
import { brotliCompressSync } from "node:zlib";
import { chromium } from "playwright-core";
import { runnerImport } from "vite";

const { values: options } = parseArgs({
  options: {
    url: { type: "string", default: "http://127.0.0.1:4040/" },
    nodes: { type: "string" },
    comb: { type: "boolean", default: false },
    only: { type: "string" },
    chromium: { type: "string", default: "/usr/bin/chromium" },
  },
});

const MOVES = 180;
const FOCUSES = 20;
const CYCLES = 200;
/** Until what is bounded is full: fifty entries of the history, timings of requests and of drawings. */
const WARM_UP_CYCLES = 25;
/** A reading may fall between an answer and its picture: the least of these is what stays. */
const READINGS = 5;
/**
 * The browser compiles what runs often, one function after the other for hundreds of changes, and counts that machine code as the page's heap.
 * It is no memory that the page holds, and hides what is: pages that are counted over changes are interpreted.
 */
const INTERPRETED = "--js-flags=--no-opt,--no-maglev,--no-sparkplug";
const { module: generator } = await runnerImport(new URL("generate.ts", import.meta.url).pathname);
const browser = await chromium.launch({
  executablePath: options.chromium,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", ...(options.only === "cycles" ? [INTERPRETED] : [])],
});
const page = await browser.newPage({ viewport: { width: 1920, height: 1080 } });
const proxy = options.nodes ? await serveGenerated(Number(options.nodes)) : undefined;

const measures = { paint: measurePaint, focus: measureFocus, cycles: measureCycles };
const figures = await (measures[options.only] ?? measureEngine)();
await browser.close();
proxy?.server.close();
process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`);

async function firstPicture() {
  await page.goto(new URL("?v=1&view=flame&live=0", proxy?.url ?? options.url).href);
  await page.waitForFunction(() => performance.getEntriesByName("fg:first").length > 0, undefined, { timeout: 60_000 });
}

async function measureEngine() {
  await firstPicture();
  const engine = await page.evaluate(measure, MOVES);
  await page.fill("[data-testid=search-input]", "function_(12|99)|main");
  await page.waitForFunction(() => window.__perf.searches.length > 0);
  engine.search_ms = await page.evaluate(() => window.__perf.searches.at(-1));
  engine.bytes_per_node = Math.round((await usedBytes()) / Math.max(1, engine.nodes));
  return engine;
}

/** What the page loads until it is painted, as brotli makes it: the browser asks for that only over TLS. */
async function measurePaint() {
  const loaded = [];
  page.on("response", (response) => {
    if (!response.url().includes("/api/")) loaded.push(response.body().then((body) => brotliCompressSync(body).length));
  });
  await page.goto(new URL("?v=1&live=0", options.url).href);
  await page.waitForFunction(() => performance.getEntriesByType("paint").length > 0);
  const sizes = await Promise.all(loaded);
  return {
    first_paint_ms: await page.evaluate(() => performance.getEntriesByType("paint")[0].startTime),
    first_paint_bytes: sizes.reduce((sum, size) => sum + size, 0),
  };
}

/** Asks the server for the subtrees of the widest boxes, one after the other. */
async function measureFocus() {
  await firstPicture();
  const times = [];
  for (let turn = 0; turn < FOCUSES; turn++) {
    await page.evaluate(() => performance.clearMarks("focus:drawn"));
    await page.getByTestId("flamegraph").focus();
    await page.keyboard.press("Home");
    for (let step = 0; step < 2 + (turn % 5); step++) await page.keyboard.press("ArrowDown");
    await page.keyboard.press("f");
    await page.waitForFunction(() => performance.getEntriesByName("focus:drawn").length > 0);
    times.push(
      await page.evaluate(
        () =>
          performance.getEntriesByName("focus:drawn").at(-1).startTime -
          performance.getEntriesByName("focus:asked").at(-1).startTime,
      ),
    );
    // A key that comes before the picture of everything is of the picture that goes.
    await Promise.all([page.waitForResponse((response) => response.url().includes("/api/v1/flamegraph")), page.goBack()]);
    await page.waitForFunction(() => document.querySelector(".profile[aria-busy=false]") !== null);
    await drawnFrames();
  }
  const sorted = times.toSorted((left, right) => left - right);
  return { focus_ms: { p50: sorted[Math.floor(FOCUSES / 2)], p95: sorted[Math.floor(FOCUSES * 0.95)] } };
}

/** What is left in memory when pictures come and go. */
async function measureCycles() {
  await firstPicture();
  let before = 0;
  for (let cycle = 0; cycle < WARM_UP_CYCLES + CYCLES; cycle++) {
    if (cycle === WARM_UP_CYCLES) before = await leastUsedBytes();
    await page.getByTestId("screen-status").click();
    await page.waitForFunction(() => document.querySelector("[data-testid=flamegraph]") === null);
    await page.getByTestId("screen-profile").click();
    await page.waitForFunction(() => window.__candela.flamegraph().visible.length > 0);
  }
  return { cycle_growth_bytes: (await leastUsedBytes()) - before };
}

async function leastUsedBytes() {
  let least = Number.POSITIVE_INFINITY;
  for (let reading = 0; reading < READINGS; reading++) {
    least = Math.min(least, await usedBytes());
    await drawnFrames();
  }
  return least;
}

function drawnFrames() {
  return page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
}

async function usedBytes() {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize, backingStorageSize = 0 } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize + backingStorageSize;
}

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
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
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
    hit_ms: { mean: mean(window.__perf.hits), p95: quantile(window.__perf.hits, 0.95) },
    hover_ms: { p50: quantile(window.__perf.hovers, 0.5), p95: quantile(window.__perf.hovers, 0.95) },
  };
}
