// Drives the page of a difference. Called by crates/formats/tests/html_diff.rs:
//   node e2e/html-diff.mjs FILE FUNCTION SCREENSHOTS
// reads legend, table and the tooltip of FUNCTION, looks at the colours of the boxes in both schemes, searches, zooms by pointer
// and keyboard, and exchanges the widths.
// Pictures go to SCREENSHOTS-light.png and SCREENSHOTS-dark.png. Prints one JSON line with what it saw.
import { pathToFileURL } from "node:url";
import { open } from "./browser.mjs";

const [file, wanted, screenshots] = process.argv.slice(2);
const { browser, page, problems } = await open();
await page.setViewportSize({ width: 1280, height: 800 });
await page.emulateMedia({ colorScheme: "light" });
await page.goto(pathToFileURL(file).href);

const boxes = () => page.evaluate(() => window.__candela.flamegraph().visible);
const names = async () => (await boxes()).map(({ name }) => name);
const rows = () =>
  page
    .getByTestId("top-row")
    .evaluateAll((elements) =>
      elements.map((element) => [
        ...[...element.querySelectorAll(".top-before, .top-after, .cost-share, .cost-value")].map((cell) => cell.textContent),
        element.dataset.function,
      ]),
    );
// In the middle of a box, and along its foot.
const colors = () =>
  page.evaluate(() => {
    const canvas = document.querySelector("[data-testid=flamegraph-canvas]");
    const context = canvas.getContext("2d");
    const at = (x, y) => [...context.getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1).data].slice(0, 3);
    return Object.fromEntries(
      window.__candela.flamegraph().visible.map(({ name, x, y, w, h }) => {
        const right = x + w - 4;
        return [name, { fill: at(right, y + 3), edge: at(right, y + h - 1) }];
      }),
    );
  });
// Texts of the header that stand in each other's way.
const overlaps = () =>
  page.evaluate(() => {
    const parts = [...document.querySelectorAll(".header > *")].map((part) => [part.textContent, part.getBoundingClientRect()]);
    return parts.slice(1).flatMap(([text, { left }], index) => (left < parts[index][1].right ? [text] : []));
  });

await page.waitForFunction(() => window.__candela?.flamegraph().visible.length > 0);
await page.getByTestId("top-row").first().waitFor();
const seen = {
  whole: await page.getByTestId("whole").textContent(),
  legend: await page.getByTestId("change-legend").textContent(),
  atFirst: await names(),
  rows: await rows(),
  overlaps: await overlaps(),
  colors: { light: await colors() },
};

const found = (await boxes()).find(({ name }) => name === wanted);
const canvas = await page.getByTestId("flamegraph-canvas").boundingBox();
await page.mouse.move(canvas.x + found.x + found.w / 2, canvas.y + found.y + found.h / 2);
seen.tooltip = await page.getByRole("tooltip").textContent();
await page.screenshot({ path: `${screenshots}-light.png` });

await page.emulateMedia({ colorScheme: "dark" });
await page.waitForFunction((before) => {
  const context = document.querySelector("[data-testid=flamegraph-canvas]").getContext("2d");
  const box = window.__candela.flamegraph().visible[0];
  const [red] = context.getImageData((box.x + box.w - 4) * devicePixelRatio, (box.y + 3) * devicePixelRatio, 1, 1).data;
  return red !== before;
}, Object.values(seen.colors.light)[0].fill[0]);
seen.colors.dark = await colors();
await page.screenshot({ path: `${screenshots}-dark.png` });

await page.getByRole("button", { name: "Change", exact: true }).click();
seen.shrankMost = (await rows())[0];

await page.keyboard.press("/");
await page.keyboard.type(wanted);
await page.waitForFunction(() => /\d/.test(document.querySelector("[data-testid=search-share]")?.textContent ?? ""));
seen.share = await page.getByTestId("search-share").textContent();
seen.foundRows = await rows();
await page.keyboard.press("Escape");
await page.keyboard.press("Escape");

await page.mouse.click(canvas.x + found.x + found.w / 2, canvas.y + found.y + found.h / 2);
await page.getByRole("navigation", { name: "Zoom" }).waitFor();
seen.status = await page.getByTestId("flamegraph-status").textContent();
await page.getByTestId("flamegraph").focus();
await page.keyboard.press("Home");
await page.getByRole("navigation", { name: "Zoom" }).waitFor({ state: "detached" });

// The boxes are those of the last drawing, which comes a frame after what asked for it.
const drawn = (areSame) =>
  page.waitForFunction(
    ([first, wanted_]) =>
      (JSON.stringify(window.__candela.flamegraph().visible.map(({ name }) => name)) === first) === wanted_,
    [JSON.stringify(seen.atFirst), areSame],
  );
await drawn(true);
await page.getByRole("group", { name: "Widths" }).locator("button[aria-pressed=false]").click();
await drawn(false);
seen.exchanged = await names();
await browser.close();
process.stdout.write(`${JSON.stringify({ ...seen, problems })}\n`);
