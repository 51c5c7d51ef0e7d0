// Drives a page of one file. Called by crates/formats/tests/html.rs:
//   node e2e/html.mjs FILE FUNCTION SCREENSHOT
// looks at the boxes, searches for FUNCTION, zooms into it by a click and by the keyboard, reads the table, and
// changes to the second profile type. Prints one JSON line with what it saw; a request to any network is a problem.
import { pathToFileURL } from "node:url";
import { open } from "./browser.mjs";

const [file, wanted, screenshot] = process.argv.slice(2);
const { browser, page, problems } = await open();
await page.goto(pathToFileURL(file).href);

const graph = () => page.evaluate(() => window.__candela.flamegraph());
const box = async (name) => {
  const found = await page.waitForFunction(
    (name_) => window.__candela?.flamegraph().visible.find((candidate) => candidate.name === name_),
    name,
  );
  return found.jsonValue();
};
const isZoomed = (name) =>
  page.waitForFunction((name_) => {
    const { visible } = window.__candela.flamegraph();
    const found = visible.find((candidate) => candidate.name === name_);
    return found && visible.every((candidate) => candidate.w <= found.w + 1);
  }, name);

await box(wanted);
const seen = { title: await page.title(), first: await graph(), whole: await page.getByTestId("whole").textContent() };
await page.screenshot({ path: screenshot });

await page.keyboard.press("/");
await page.keyboard.type(wanted);
await page.waitForFunction(() => /\d/.test(document.querySelector("[data-testid=search-share]")?.textContent ?? ""));
seen.share = await page.getByTestId("search-share").textContent();
await page.keyboard.press("Escape");
await page.keyboard.press("Escape");
seen.rows = await page.getByTestId("top-row").allTextContents();

const found = await box(wanted);
const canvas = await page.getByTestId("flamegraph-canvas").boundingBox();
await page.mouse.click(canvas.x + found.x + found.w / 2, canvas.y + found.y + found.h / 2);
await isZoomed(wanted);
seen.zoomedTo = await page.getByRole("navigation", { name: "Zoom" }).locator("[aria-current=location]").textContent();
await page.getByTestId("flamegraph").focus();
await page.keyboard.press("Home");
await page.getByRole("navigation", { name: "Zoom" }).waitFor({ state: "detached" });

const types = page.getByTestId("type-chooser");
seen.types = await types.locator("option").allTextContents();
const { unit } = await graph();
await types.selectOption({ index: 1 });
// The tree, and then the picture of it.
await page.waitForFunction((before) => {
  const now = window.__candela.flamegraph();
  return now.unit !== before && now.visible[0]?.total === now.total;
}, unit);
seen.second = await graph();
await browser.close();
process.stdout.write(`${JSON.stringify({ ...seen, problems })}\n`);
