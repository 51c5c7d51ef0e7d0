// Walks the screens beside the profile in a real browser:
//   node e2e/screens.mjs URL SERVICE [FOLDER]
// goes through services, labels, heatmap, grouping, UTC and status of a server with data of SERVICE, and
// leaves screenshots in FOLDER where one is named. Prints one JSON line; what did not behave is in `problems`.
import { join } from "node:path";
import { launch, PATIENCE_MS } from "./browser.mjs";

const [url, service, folder] = process.argv.slice(2);

const browser = await launch();
const problems = [];

async function open(colorScheme, width = 1280, path = "") {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, timezoneId: "Asia/Tokyo" });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("pageerror", (error) => problems.push(`page error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(`console: ${message.text()}`);
  });
  await page.goto(url + path);
  return page;
}

const parameter = (page, name) => new URL(page.url()).searchParams.get(name);

function expectEqual(what, actual, expected) {
  if (actual !== expected) problems.push(`${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`);
}

async function picture(page, name) {
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) });
}

const page = await open("light");

// Services: search, order, keyboard, and on to the profile.
await page.getByTestId("screen-services").click();
const rows = page.getByTestId("services-row");
await rows.first().waitFor();
const services = await rows.count();
await page.getByTestId("services-by-service").click();
const names = await rows.locator("th").allTextContents();
expectEqual("order by name", names.join(), names.toSorted((left, right) => left.localeCompare(right, "en")).join());
await page.getByTestId("services-search").fill(service);
await page.waitForFunction((wanted) => document.querySelectorAll(`[data-testid=${wanted}]`).length >= 1, "services-row");
expectEqual("rows of the search", (await rows.first().innerText()).includes(service), true);
await page.getByTestId("services-all").focus();
await page.keyboard.press("ArrowDown");
await page.keyboard.press("Enter");
await page.getByTestId("flamegraph").waitFor();
expectEqual("selector after the table", parameter(page, "query"), `{service_name="${service}"}`);

// The series by a label, and the quality bar.
await page.getByTestId("group-chooser").click();
await page.locator(".group-list .menu-item").nth(1).click();
const groupedBy = parameter(page, "by");
if (!groupedBy) problems.push("the series were not grouped");
await page.getByTestId("quality-samples").click();
await page.getByRole("dialog", { name: "How sure the shares are" }).waitFor();
await page.keyboard.press("Escape");

// The heatmap: keyboard, then a range of two columns for the whole page.
const heatmap = page.getByTestId("heatmap-canvas");
await heatmap.focus();
await page.keyboard.press("ArrowLeft");
await page.getByTestId("heatmap-cell").filter({ hasText: "profile" }).waitFor();
await page.keyboard.press("ArrowLeft");
await page.keyboard.press("Enter");
await page.keyboard.press("ArrowLeft");
await page.keyboard.press("ArrowLeft");
await page.keyboard.press("Enter");
await page.waitForFunction(() => /from=\d+/.test(location.search));
await page.goBack();
expectEqual("range after going back", parameter(page, "from"), null);
await page.getByTestId("heatmap-toggle").click();
expectEqual("canvas when folded", await heatmap.count(), 0);
await page.getByTestId("heatmap-toggle").click();

// Dragging does the same.
await heatmap.waitFor();
await page.waitForTimeout(500);
const box = await heatmap.boundingBox();
await page.mouse.move(box.x + box.width * 0.9, box.y + 20);
await page.mouse.down();
await page.mouse.move(box.x + box.width * 0.95, box.y + 20, { steps: 4 });
await page.mouse.up();
await page.waitForFunction(() => /from=\d+/.test(location.search));

// The key after one that closes a dialog may come before the event of its end.
async function findCommandsRightAfter(key, dialog) {
  await page.keyboard.press(key);
  await page.locator(dialog).waitFor();
  await page.evaluate((selector) => {
    document.querySelector(selector).close();
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true }));
  }, dialog);
  await page.locator("[data-testid=palette][open]").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog[open]").waitFor({ state: "hidden" });
}
await findCommandsRightAfter("?", "dialog.help[open]");
await findCommandsRightAfter("a", "dialog[data-testid=notes][open]");

// Commands that are open before the services are loaded have them as soon as they are.
let answerServices;
const mayAnswer = new Promise((resolve) => (answerServices = resolve));
await page.route("**/api/v1/services?*", async (route) => {
  await mayAnswer;
  await route.continue();
});
await page.reload();
const savedViews = page.waitForResponse("**/api/v1/views*");
await page.keyboard.press("Control+k");
await page.getByTestId("palette-input").fill("serv checkout");
await savedViews;
answerServices();
await page.getByRole("option", { name: "service checkout", selected: true }).waitFor();
await page.keyboard.press("Escape");

// UTC: the same moment, another clock.
const localRange = await page.getByTestId("range-label").innerText();
await page.getByTestId("range-label").click();
await page.getByTestId("utc-toggle").check();
expectEqual("parameter of UTC", parameter(page, "utc"), "1");
await page.keyboard.press("Escape");
const utcRange = await page.getByTestId("range-label").innerText();
if (utcRange === localRange || !utcRange.includes("UTC")) problems.push(`range in UTC: ${utcRange}`);

// Labels: a chooser, small flame graphs, two of them to compare.
await page.goto(`${url}?screen=labels`);
const cards = page.getByTestId("label-card");
await cards.first().waitFor();
await page.locator("[data-testid=label-card] canvas[data-drawn=true]").first().waitFor();
const values = await cards.count();
if (values > 1) {
  await cards.nth(0).getByRole("checkbox").check();
  await cards.nth(1).getByRole("checkbox").check();
  await page.getByTestId("labels-compare").click();
  expectEqual("screen of two values", parameter(page, "screen"), "compare");
  if (!parameter(page, "base_query")?.includes("service_name")) problems.push("no selector to compare with");
  await page.goBack();
}
await cards.first().getByRole("button").first().click();
await page.getByTestId("flamegraph").waitFor();
if (!parameter(page, "query")?.includes("service_name")) problems.push("a card did not select its value");

// Status: sections, and a time of its own.
await page.getByTestId("screen-status").click();
const sections = ["problems", "agents", "quality", "drops", "storage"];
await Promise.all(sections.map((section) => page.getByTestId(`status-${section}`).waitFor()));

const looks = ["light", "dark"].flatMap((scheme) =>
  [1280, 1920].flatMap((width) => ["services", "profile", "labels", "status"].map((screen) => ({ scheme, width, screen }))),
);

async function look({ scheme, width, screen }) {
  const looked = await open(scheme, width, `?screen=${screen}&live=0`);
  await looked.waitForLoadState("networkidle");
  await picture(looked, `${screen}-${scheme}-${width}`);
  await looked.context().close();
}

// One after another: sixteen pages at once would wait for each other.
if (folder) await looks.reduce((before, next) => before.then(() => look(next)), Promise.resolve());
await browser.close();
process.stdout.write(`${JSON.stringify({ services, groupedBy, values, problems })}\n`);
