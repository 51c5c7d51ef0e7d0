// Walks through the chart of a recording, the heatmap of its samples, and a comparison of two ranges in it:
//   node e2e/chart.mjs URL FROM TO LONGEST_MS FOLDER
// The server has the service `lanes` (crates/cli/tests/programs/lanes.c) between FROM and TO (unix milliseconds), and the service
// `untimed` without times of samples. No box of `lift` is longer than LONGEST_MS. Leaves screenshots of both themes in FOLDER. Prints
// one JSON line; what did not behave is in `problems`.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { launch, PATIENCE_MS } from "./browser.mjs";

const [url, from, to, longestMs, folder] = process.argv.slice(2);
const browser = await launch();
const problems = [];

function expect(what, isTrue) {
  if (!isTrue) problems.push(what);
}

async function open(search, { width = 1280, colorScheme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("pageerror", (error) => problems.push(`page error: ${error.message}`));
  const query = '{service_name="lanes"}';
  await page.goto(`${url}?${new URLSearchParams({ v: "1", query, type: "cpu", live: "0", view: "chart", from, to, ...search })}`);
  return page;
}

const boxes = (page) => page.evaluate(() => window.__candela.chart());
const parameter = (page, name) => new URL(page.url()).searchParams.get(name);

async function shown(page) {
  await page.waitForFunction(() => (window.__candela?.chart().length ?? 0) > 3);
  return boxes(page);
}

async function pointAt(page, box) {
  const canvas = await page.getByTestId("chart-canvas").boundingBox();
  const at = { x: canvas.x + box.x + box.w / 2, y: canvas.y + box.y + box.h / 2 };
  await page.mouse.move(at.x, at.y);
  return at;
}

/** What the heatmap shows once it is drawn: its samples and its columns. */
async function drawnHeatmap(page) {
  await page.waitForFunction(() => document.querySelector("[data-testid=heatmap-canvas]")?.getAttribute("aria-label").includes("samples by their times"));
  return page.getByTestId("heatmap-canvas").evaluate((canvas) => `${canvas.getAttribute("aria-label")} ${canvas.getAttribute("aria-valuemax")}`);
}

/** A point of the heatmap is another time in the picture of another range. */
async function showsAgain(page, heatmap) {
  await page.waitForFunction(
    ([start, wanted]) => {
      const canvas = document.querySelector("[data-testid=heatmap-canvas]");
      const told = `${canvas?.getAttribute("aria-label")} ${canvas?.getAttribute("aria-valuemax")}`;
      return new URL(location.href).searchParams.get("from") === start && told === wanted && !canvas.closest(".is-stale-body");
    },
    [from, heatmap],
  );
}

// All threads at once, and all of them together above.
const page = await open({});
const visible = await shown(page);
const lanes = await page.getByTestId("lane").evaluateAll((names) => names.map((name) => name.dataset.lane));
expect(`lanes are ${lanes}`, lanes[0] === "All together" && lanes.some((it) => it.startsWith("porter")) && lanes.some((it) => it.startsWith("helper")));
const porter = visible.filter(({ lane }) => lane.startsWith("porter"));
const helper = visible.filter(({ lane, name }) => lane.startsWith("helper") && name === "carry");
expect("the porter lifts and carries", ["lift", "carry"].every((name) => porter.some((box) => box.name === name)));
const lifts = porter.filter(({ name }) => name === "lift");
expect(`the porter lifts three times: ${JSON.stringify(lifts)}`, lifts.length >= 3);
expect(`the helper carries in the middle: ${JSON.stringify(helper)}`, helper.length > 0 && helper[0].x > 200);
const canvas = await page.evaluate(() => {
  const { width, height } = document.querySelector("[data-testid=chart-canvas]");
  return [width / devicePixelRatio - innerWidth, height / devicePixelRatio - innerHeight];
});
expect(`the canvas is larger than the screen by ${canvas}`, Math.max(...canvas) <= 0);
await page.screenshot({ path: join(folder, "chart-light-1280.png") });

// The tooltip, wheel and keys.
const widest = lifts.toSorted((one, other) => other.w - one.w)[0];
await pointAt(page, widest);
const told = await page.getByTestId("chart-tooltip").textContent();
expect(`the tooltip says ${told}`, told.includes("lift") && told.includes("porter") && / ms/.test(told));
const widthOf = async () => Math.max(...(await boxes(page)).filter(({ name, lane }) => name === "lift" && lane.startsWith("porter")).map(({ w }) => w));
const before = await widthOf();
await page.keyboard.down("Control");
await page.mouse.wheel(0, -400);
await page.keyboard.up("Control");
await page.waitForFunction(
  (width) => Math.max(...window.__candela.chart().filter(({ name, lane }) => name === "lift" && lane.startsWith("porter")).map(({ w }) => w)) > width * 1.5,
  before,
);
await page.getByTestId("chart").focus();
await page.keyboard.press("Home");
await page.waitForFunction(
  (width) => Math.abs(Math.max(...window.__candela.chart().filter(({ name, lane }) => name === "lift" && lane.startsWith("porter")).map(({ w }) => w)) - width) < 2,
  before,
);
await page.keyboard.press("ArrowDown");
const selected = await page.getByTestId("chart-selected").textContent();
expect(`a screen reader reads ${selected}`, selected.includes("All together"));

// Folding, and lanes by name and by label.
await page.getByTestId("lane").first().getByRole("button").click();
await page.waitForFunction(() => !window.__candela.chart().some(({ lane }) => lane === "All together"));
await page.getByTestId("lane-filter").fill("helper");
await page.waitForFunction(() => document.querySelectorAll("[data-testid=lane]").length === 1);
await page.getByTestId("lane-filter").fill("");
await page.getByTestId("lane-by").selectOption("pid");
await page.waitForFunction(() => document.querySelectorAll("[data-testid=lane]").length === 1);
expect("what has a lane is in the address", parameter(page, "lane_by") === "pid");
await page.getByTestId("lane-by").selectOption("");
await page.waitForFunction(() => document.querySelectorAll("[data-testid=lane]").length > 2);

// The picture for somewhere else has the lanes and their names.
await page.getByTestId("export").click();
const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("PNG picture").click()]);
const file = join(folder, "chart-exported.png");
await download.saveAs(file);
const png = await readFile(file);
const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
const stage = await page.getByTestId("chart-canvas").boundingBox();
expect(`the exported picture has ${width} × ${height} pixels`, width >= stage.width && height > stage.height && png.length > 5000);

// A click chooses the time of a box for everything, and Backspace takes that back.
const everything = await drawnHeatmap(page);
const again = (await shown(page)).filter(({ lane, name }) => lane.startsWith("porter") && name === "lift");
const chosen = again.toSorted((one, other) => other.w - one.w)[0];
const at = await pointAt(page, chosen);
await page.mouse.click(at.x, at.y);
await page.waitForFunction((start) => new URL(location.href).searchParams.get("from") !== start, from);
const length = Number(parameter(page, "to")) - Number(parameter(page, "from"));
// The ends are told in whole milliseconds.
expect(`the range is ${length} ms`, length > 20 && length <= Number(longestMs) + 2);
// Ends are told in milliseconds: a sample of what stands beside the box may be in them.
await page.waitForFunction(() => {
  const widths = { lift: 0, carry: 0 };
  for (const { lane, name, w } of window.__candela.chart()) {
    if (lane.startsWith("porter") && name in widths) widths[name] += w;
  }
  return widths.lift > 0 && widths.carry < widths.lift / 5;
});
const inside = await (
  await fetch(`${url}api/v1/flamegraph?${new URLSearchParams({ query: '{service_name="lanes"}', type: "cpu", format: "json", from: parameter(page, "from"), to: parameter(page, "to") })}`)
).json();
const total = await page.evaluate(() => window.__candela.flamegraph().total);
expect(`the page has ${total}, the server ${inside.total}`, inside.total > 0 && total === inside.total);
await page.getByTestId("chart").focus();
await page.keyboard.press("Backspace");
await showsAgain(page, everything);

// The heatmap of samples: seconds across, moments up; a rectangle within a column is a range below a second.
const heat = page.getByTestId("heatmap-canvas");
const area = await heat.boundingBox();
const column = area.x + area.width / 2;
await page.mouse.move(column, area.y + 70);
await page.mouse.down();
await page.mouse.move(column, area.y + 30, { steps: 4 });
await page.mouse.up();
await page.waitForFunction((start) => new URL(location.href).searchParams.get("from") !== start, from);
const moment = Number(parameter(page, "to")) - Number(parameter(page, "from"));
expect(`the rectangle is ${moment} ms`, moment > 0 && moment < 1000);
await page.goBack();
await showsAgain(page, everything);

// Two rectangles, with the pointer and with the keyboard, are a comparison.
await shown(page);
await page.keyboard.down("Shift");
await page.mouse.move(area.x + area.width * 0.2, area.y + 90);
await page.mouse.down();
await page.mouse.move(area.x + area.width * 0.2, area.y + 20, { steps: 4 });
await page.mouse.up();
await page.keyboard.up("Shift");
await page.getByTestId("marked-ranges").waitFor();
await heat.focus();
await page.keyboard.press("ArrowRight");
for (let step = 0; step < 4; step++) await page.keyboard.press("ArrowLeft");
await page.keyboard.press("Enter");
for (let step = 0; step < 10; step++) await page.keyboard.press("ArrowUp");
await page.keyboard.press("Shift+Enter");
await page.waitForFunction(() => !document.querySelector("[data-testid=marked-ranges]").textContent.includes("everything shown"));
await page.screenshot({ path: join(folder, "chart-marked-1280.png") });
await page.getByTestId("compare-marked").click();
await page.waitForFunction(() => new URL(location.href).searchParams.get("screen") === "compare");
expect("both ranges are in the address", ["from", "to", "base_from", "base_to"].every((name) => /^\d+$/.test(parameter(page, name) ?? "")));
expect("the earlier range is before", Number(parameter(page, "base_from")) < Number(parameter(page, "from")));
await page.close();

// Where no times are stored the page says so, with the commands.
const untimed = await open({ query: '{service_name="untimed"}', type: "samples", from: "now-1h", to: "now" });
const said = await untimed.getByTestId("no-times").textContent();
expect(`without times the page says ${said}`, said.includes("candela record") && said.includes("TIMESTAMPS"));
await untimed.screenshot({ path: join(folder, "chart-without-times-1280.png") });
await untimed.close();

const dark = await open({}, { width: 1920, colorScheme: "dark" });
await shown(dark);
await dark.screenshot({ path: join(folder, "chart-dark-1920.png") });

await browser.close();
process.stdout.write(`${JSON.stringify({ problems })}\n`);
