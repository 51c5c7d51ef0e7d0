// Drives flame graphs that are SVG files. Called by crates/formats/tests/svg.rs:
//   node e2e/svg.mjs FUNCTION FILE...
// zooms into FUNCTION by a click and by the keyboard, searches for it by both, and takes all back with Escape.
// Prints one JSON line with what it saw of each file.
import { pathToFileURL } from "node:url";
import { open } from "./browser.mjs";

const [wanted, ...files] = process.argv.slice(2);
const { browser, page, problems } = await open();
page.on("dialog", (dialog) => dialog.accept(`^${wanted}$`));

const frame = page.locator(`.frame[data-name="${wanted}"]`);
const widths = async () => {
  const found = await page.locator(".frame").evaluateAll((frames) =>
    frames.map((one) => [one.dataset.name, one.style.display === "none" ? 0 : Number(one.querySelector("rect").getAttribute("width"))]),
  );
  return Object.fromEntries(found);
};
const matched = () => page.locator("#matched").textContent();
const focused = () => page.evaluate(() => document.activeElement.dataset?.name ?? null);

async function walk(down, path = []) {
  if (path.length === 20 || path.at(-1) === wanted) return path;
  await page.keyboard.press(down);
  return walk(down, [...path, await focused()]);
}

async function look(file) {
  await page.goto(pathToFileURL(file).href);
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
  const isFlame = (await page.evaluate(() => document.documentElement.dataset.orientation)) === "flame";
  // The first arrow goes to where the picture is zoomed.
  seen.path = await walk(isFlame ? "ArrowUp" : "ArrowDown");
  await page.keyboard.press("Enter");
  seen.zoomedByKey = await widths();
  await page.keyboard.press("Escape");
  seen.resetByKey = await widths();
  return seen;
}

// One after the other: they share the page, and the browser, which takes longer to start than all of them.
const looks = await files.reduce(async (before, file) => [...(await before), await look(file)], Promise.resolve([]));
await browser.close();
process.stdout.write(`${JSON.stringify({ files: looks, problems })}\n`);
