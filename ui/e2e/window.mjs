// Drives the window in a real browser. Called by crates/cli/tests/window.rs:
//   node e2e/window.mjs URL SERVICE FUNCTION FOLDER
// opens the page of a service, waits until FUNCTION stands in the flame graph, searches for it, zooms
// into it, and leaves screenshots of both themes in FOLDER. Prints one JSON line with what it saw.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [url, service, wanted, folder] = process.argv.slice(2);
const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const PATIENCE_MS = 60_000;

const browser = await chromium.launch({
  executablePath: BROWSERS.find((path) => existsSync(path)),
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});

const problems = [];

async function open(colorScheme) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme });
  const page = await context.newPage();
  page.on("pageerror", (error) => problems.push(`page error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(`console: ${message.text()}`);
  });
  await page.goto(url);
  return page;
}

/** The box of the wanted function as the engine drew it. */
function box(page, name) {
  return page.evaluate((function_) => {
    const view = window.__candela?.flamegraph();
    return view?.visible.find((candidate) => candidate.name === function_) ?? null;
  }, name);
}

async function boxEventually(page, name, timeout = PATIENCE_MS) {
  const handle = await page.waitForFunction(
    (function_) => window.__candela?.flamegraph()?.visible.find((candidate) => candidate.name === function_),
    name,
    { timeout, polling: 100 },
  );
  return handle.jsonValue();
}

/** Live data may move what is being looked at: a person clicks again. */
async function goToHeaviest(name, clicksLeft = 6) {
  await page.getByText("go to heaviest").click();
  const found = boxEventually(page, name, 5_000);
  if (clicksLeft === 1) return found;
  return found.catch(() => goToHeaviest(name, clicksLeft - 1));
}

const started = Date.now();
const page = await open("light");
await page.getByTestId("services-list").waitFor({ timeout: PATIENCE_MS });
const row = page.getByTestId("service-row").filter({ hasText: service }).first();
await row.waitFor({ timeout: PATIENCE_MS });
await row.click();
// The answer of the service alone, not that of all services before it.
await page.waitForFunction(
  () => {
    const boxes = window.__candela?.flamegraph()?.visible ?? [];
    const entry = boxes.find((candidate) => candidate.name === "_start");
    return location.search.includes("service_name") && entry && entry.w > 0.8 * boxes[0].w;
  },
  null,
  { timeout: PATIENCE_MS, polling: 100 },
);
// The function may lie deeper than the screen is high: find it as a person would.
await page.getByTestId("top-row").filter({ hasText: wanted }).first().waitFor({ timeout: PATIENCE_MS });
await page.getByTestId("search-input").fill(wanted);
await goToHeaviest(wanted);
const secondsToFunction = (Date.now() - started) / 1000;
if (process.env.STOP_AT_FIRST_GRAPH) {
  await browser.close();
  process.stdout.write(`${JSON.stringify({ secondsToFunction, problems })}\n`);
  process.exit(0);
}

await page.waitForFunction(() => /\d/.test(document.querySelector("[data-testid=search-share]")?.textContent ?? ""));
const share = await page.getByTestId("search-share").textContent();
await page.getByTestId("top-row").filter({ hasText: wanted }).first().waitFor();
await page.screenshot({ path: join(folder, "light.png") });

await page.getByTestId("search-input").fill("");
const canvas = await page.getByTestId("flamegraph-canvas").boundingBox();
const target = await box(page, wanted);
await page.mouse.move(canvas.x + target.x + target.w / 2, canvas.y + target.y + target.h / 2);
await page.waitForFunction(
  (name) => document.querySelector("[data-testid=flamegraph-status]")?.textContent?.includes(name),
  wanted,
);
const status = await page.getByTestId("flamegraph-status").textContent();
// Up to everything by the breadcrumb, and down again by a click on a frame near the root.
await page.getByRole("button", { name: "All", exact: true }).click();
const outer = await boxEventually(page, "main");
const unzoomed = page.url();
await page.mouse.click(canvas.x + outer.x + outer.w / 2, canvas.y + outer.y + outer.h / 2);
await page.waitForFunction((before) => location.href !== before, unzoomed);
const stateInUrl = page.url();

const dark = await open("dark");
await dark.goto(stateInUrl);
await boxEventually(dark, "main");
await dark.screenshot({ path: join(folder, "dark.png") });

const paint = await page.evaluate(() => ({
  firstPaint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null,
  firstGraph: performance.getEntriesByName("fg:first")[0]?.startTime ?? null,
}));
await browser.close();
process.stdout.write(`${JSON.stringify({ secondsToFunction, share, status, stateInUrl, problems, ...paint })}\n`);
