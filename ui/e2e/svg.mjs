// Drives a flame graph that is an SVG file. Called by crates/formats/tests/svg.rs:
//   node e2e/svg.mjs FILE FUNCTION
// zooms into FUNCTION by a click and by the keyboard, searches for it by both, and takes all back with Escape.
// Prints one JSON line with what it saw.
import { pathToFileURL } from "node:url";
import { open } from "./browser.mjs";

const [file, wanted] = process.argv.slice(2);
const { browser, page, problems } = await open();
page.on("dialog", (dialog) => dialog.accept(`^${wanted}$`));
await page.goto(pathToFileURL(file).href);

const frame = page.locator(`.frame[data-name="${wanted}"]`);
const widths = async () => {
  const found = await page.locator(".frame").evaluateAll((frames) =>
    frames.map((one) => [one.dataset.name, one.style.display === "none" ? 0 : Number(one.querySelector("rect").getAttribute("width"))]),
  );
  return Object.fromEntries(found);
};
const matched = () => page.locator("#matched").textContent();
const seen = { atFirst: await widths() };

await frame.click();
seen.zoomedByClick = await widths();
await page.locator("#reset").click();
seen.resetByClick = await widths();
await page.locator("#search").click();
seen.matchedByClick = await matched();
await page.keyboard.press("Escape");
seen.afterEscape = await matched();

// The keyboard alone, from a page nobody has clicked on.
await page.reload();
await page.keyboard.press("/");
seen.matchedByKey = await matched();
const focused = () => page.evaluate(() => document.activeElement.dataset?.name ?? null);
const down = (await page.evaluate(() => document.documentElement.dataset.orientation)) === "flame" ? "ArrowUp" : "ArrowDown";
// The first arrow goes to where the picture is zoomed.
const walk = async (path) => {
  if (path.length === 20 || path.at(-1) === wanted) return path;
  await page.keyboard.press(down);
  return walk([...path, await focused()]);
};
seen.path = await walk([]);
await page.keyboard.press("Enter");
seen.zoomedByKey = await widths();
await page.keyboard.press("Escape");
seen.resetByKey = await widths();
await browser.close();
process.stdout.write(`${JSON.stringify({ ...seen, problems })}\n`);
