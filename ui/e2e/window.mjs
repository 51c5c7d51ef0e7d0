// Drives the window in a real browser. Called by crates/cli/tests/host/window.rs:
//   node e2e/window.mjs URL SERVICE FUNCTION FOLDER
// opens the page of a service, waits until FUNCTION stands in the flame graph, searches for it, zooms
// into it, goes back and forth with mouse, keyboard and address, and leaves screenshots of both themes
// in FOLDER. Prints one JSON line with what it saw; what did not behave is in `problems`.
import { join } from "node:path";
import { launch, PATIENCE_MS } from "./browser.mjs";

const [url, service, wanted, folder] = process.argv.slice(2);

const browser = await launch();

const problems = [];

async function open(colorScheme) {
  // Without motion nothing moves under whoever points at where it was.
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme, reducedMotion: "reduce" });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  page.on("pageerror", (error) => problems.push(`page error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(`console: ${message.text()}`);
  });
  await page.goto(url);
  return page;
}

async function boxEventually(page, name, timeout = PATIENCE_MS) {
  const handle = await page.waitForFunction(
    (function_) => window.__candela?.flamegraph()?.visible.find((candidate) => candidate.name === function_),
    name,
    { timeout, polling: 50 },
  );
  return handle.jsonValue();
}

/** What the status line says about a function, once it is about that. */
async function statusEventually(page, name) {
  const handle = await page.waitForFunction((function_) => {
    const line = document.querySelector("[data-testid=flamegraph-status]");
    return line?.querySelector("strong")?.textContent === function_ && line.textContent;
  }, name);
  return handle.jsonValue();
}

function parameter(page, name) {
  return new URL(page.url()).searchParams.get(name);
}

function expectEqual(what, actual, expected) {
  if (actual !== expected) problems.push(`${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`);
}

/** The box once a frame has passed and left it where it was: an answer that came just before may not be drawn yet. */
async function restingBox(page, name, before = null) {
  const found = await boxEventually(page, name);
  if (before && before.x === found.x && before.y === found.y && before.w === found.w) return found;
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  return restingBox(page, name, found);
}

/** Live data may move what is being looked at: a person clicks again. */
async function goToHeaviest(name, deadline = Date.now() + PATIENCE_MS) {
  await page.getByText("go to heaviest").click();
  const found = boxEventually(page, name, 2_000);
  if (Date.now() > deadline) return found;
  return found.catch(() => goToHeaviest(name, deadline));
}

const page = await open("light");
await page.getByTestId("services-list").waitFor();
const row = page.getByTestId("service-row").filter({ hasText: service }).first();
await row.waitFor();
await row.click();
// The answer of the service alone, not that of all services before it.
await page.waitForFunction(
  () => {
    const boxes = window.__candela?.flamegraph()?.visible ?? [];
    const entry = boxes.find((candidate) => candidate.name === "_start");
    return location.search.includes("service_name") && entry && entry.w > 0.8 * boxes[0].w;
  },
  null,
  { polling: 100 },
);
// The function may lie deeper than the screen is high: find it as a person would.
await page.getByTestId("top-row").filter({ hasText: wanted }).first().waitFor();
await page.getByTestId("search-input").fill(wanted);
await goToHeaviest(wanted);
// The time of the clock, so that whoever started the server can tell how long it took from there.
const functionFoundMs = Date.now();
if (process.env.STOP_AT_FIRST_GRAPH) {
  await browser.close();
  process.stdout.write(`${JSON.stringify({ functionFoundMs, problems })}\n`);
  process.exit(0);
}

// From here on the picture stands still: what is compared with it must not be a refresh ahead.
await page.locator("body").click({ position: { x: 5, y: 5 } });
await page.keyboard.press("l");
await page.waitForFunction(() => location.search.includes("live=0"));
await page.waitForFunction(() => /\d/.test(document.querySelector("[data-testid=search-share]")?.textContent ?? ""));
const share = await page.getByTestId("search-share").textContent();
const samples = await page.evaluate(() => window.__candela?.flamegraph().samples ?? null);
await page.getByTestId("top-row").filter({ hasText: wanted }).first().waitFor();
const target = await restingBox(page, wanted);
await page.screenshot({ path: join(folder, "light.png") });

const canvas = await page.getByTestId("flamegraph-canvas").boundingBox();
await page.mouse.move(canvas.x + target.x + target.w / 2, canvas.y + target.y + target.h / 2);
const status = await statusEventually(page, wanted);

// What is given up changes nothing: an edit of the selector left by Escape, a service that does not exist.
const queryBefore = parameter(page, "query");
await page.getByTestId("selector-input").fill("{");
await page.keyboard.press("Escape");
await page.getByTestId("service-input").fill("no service has this name");
await page.keyboard.press("Enter");
await page.keyboard.press("Escape");
expectEqual("query after giving up", parameter(page, "query"), queryBefore);

// Up to everything by the breadcrumb, and down again by a click on a frame near the root.
const breadcrumb = page.getByRole("navigation", { name: "Zoom" });
await breadcrumb.getByRole("button").first().click();
await page.waitForFunction(() => !new URLSearchParams(location.search).has("zoom"));
const outer = await restingBox(page, "main");
const surface = await page.getByTestId("flamegraph-canvas").boundingBox();
await page.mouse.click(surface.x + outer.x + outer.w / 2, surface.y + outer.y + outer.h / 2);
await page.waitForFunction(() => new URLSearchParams(location.search).has("zoom"));
const stateInUrl = page.url();
const zoomedTo = await breadcrumb.locator("[aria-current=location]").textContent();

// The same address is the same view.
const dark = await open("dark");
await dark.goto(stateInUrl);
await boxEventually(dark, "main");
const reopened = dark.getByRole("navigation", { name: "Zoom" }).locator("[aria-current=location]");
expectEqual("zoom of the address", await reopened.textContent(), zoomedTo);
expectEqual("search of the address", await dark.getByTestId("search-input").inputValue(), wanted);
expectEqual("query of the address", await dark.getByTestId("selector-input").inputValue(), queryBefore);
await dark.screenshot({ path: join(folder, "dark.png") });

// Back undoes the zoom, forward takes it again.
await page.goBack();
await page.waitForFunction(() => !new URLSearchParams(location.search).has("zoom"));
await breadcrumb.waitFor({ state: "detached" });
await page.goForward();
await breadcrumb.waitFor();

// The keyboard alone: down the heaviest way, zoom, and up again.
await page.getByTestId("flamegraph").focus();
const zoomBefore = parameter(page, "zoom");
await page.mouse.move(5, 5);
await page.keyboard.press("ArrowDown");
await page.keyboard.press("ArrowDown");
const selected = await page.getByTestId("flamegraph-status").locator("strong").textContent();
await page.keyboard.press("Enter");
await page.waitForFunction((before) => new URLSearchParams(location.search).get("zoom") !== before, zoomBefore);
expectEqual("zoom by Enter", await breadcrumb.locator("[aria-current=location]").getAttribute("title"), selected);
const zoomByEnter = parameter(page, "zoom");
await page.keyboard.press("Escape");
await page.waitForFunction((before) => new URLSearchParams(location.search).get("zoom") !== before, zoomByEnter);
await page.keyboard.press("n");
await statusEventually(page, wanted);

// The menu of a box has the keys that stand beside its entries; Escape lets go again, wherever the focus is.
const pinned = await boxEventually(page, wanted);
const area = await page.getByTestId("flamegraph-canvas").boundingBox();
await page.mouse.click(area.x + pinned.x + pinned.w / 2, area.y + pinned.y + pinned.h / 2, { button: "right" });
await page.getByRole("menu").waitFor();
await page.keyboard.press("m");
await page.getByRole("menu").waitFor({ state: "detached" });
expectEqual("function pinned by the menu", parameter(page, "fn"), wanted);
await page.locator("body").click({ position: { x: 5, y: 5 } });
await page.keyboard.press("Escape");
expectEqual("function after Escape", parameter(page, "fn"), null);

// A drag over the chart is a range of whole steps, and a double click takes it back.
const chart = await page.getByTestId("series-chart").locator(".u-over").boundingBox();
const chartRow = chart.y + chart.height / 2;
await page.mouse.move(chart.x + chart.width * 0.5, chartRow);
await page.mouse.down();
await page.mouse.move(chart.x + chart.width * 0.7, chartRow, { steps: 4 });
await page.mouse.move(chart.x + chart.width * 0.9, chartRow, { steps: 4 });
await page.mouse.up();
await page.waitForFunction(() => /^\d+$/.test(new URLSearchParams(location.search).get("from") ?? ""));
const dragged = { from: Number(parameter(page, "from")), to: Number(parameter(page, "to")) };
await page.getByTestId("series-chart").locator(".u-over").dblclick();
await page.waitForFunction(() => !new URLSearchParams(location.search).has("from"));

const paint = await page.evaluate(() => ({
  firstPaint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null,
  firstGraph: performance.getEntriesByName("fg:first")[0]?.startTime ?? null,
}));
await browser.close();
const seen = { functionFoundMs, share, status, samples, stateInUrl, dragged, problems, ...paint };
process.stdout.write(`${JSON.stringify(seen)}\n`);
