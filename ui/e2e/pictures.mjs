// Takes the pictures of the documentation:
//   node e2e/pictures.mjs URL FOLDER
// of a `candela demo --seed 1`, whose planted changes they show. All ranges count from the end of its data, so that they may be
// taken at any time after its start. `ui/README.md` has the whole of it, with the step that makes the files smaller.
import { join } from "node:path";
import { launch } from "./browser.mjs";

const [url, folder] = process.argv.slice(2);
const MINUTE = 60_000;
const WIDTH = 1440;
const HEIGHT = 900;

const answer = await fetch(`${url}api/v1/services?from=now-1d`);
const { end_ms: end } = await answer.json();
/** Whole minutes need no seconds on the page. */
const ago = (minutes) => String(Math.floor(end / MINUTE) * MINUTE - minutes * MINUTE);
const of = (service) => `{service_name="${service}"}`;
/** The deploy that makes `checkout` slower. */
const DEPLOY = 360;

const PICTURES = [
  { name: "profile", colorScheme: "light", view: { query: of("checkout"), from: ago(60), to: ago(0) }, point: "shop/checkout/pricing.(*Engine).Quote" },
  {
    name: "compare",
    colorScheme: "light",
    view: { screen: "compare", query: of("checkout"), from: ago(DEPLOY), to: ago(DEPLOY - 30), base_from: ago(DEPLOY + 30), base_to: ago(DEPLOY) },
    point: "shop/checkout/pricing.(*Engine).applyDiscounts",
  },
  { name: "heatmap", colorScheme: "light", view: { query: of("gateway"), from: ago(40), to: ago(10), heatmap: "profiles" } },
  { name: "waits", colorScheme: "dark", view: { query: of("checkout"), type: "wall", from: ago(60), to: ago(0) } },
  { name: "labels", colorScheme: "light", view: { screen: "labels", query: of("payments"), by: "pod", from: ago(60), to: ago(0) }, height: 470 },
];

const browser = await launch();

async function take({ name, colorScheme, view, point, height = HEIGHT }) {
  const context = await browser.newContext({ viewport: { width: WIDTH, height }, colorScheme, timezoneId: "UTC", reducedMotion: "reduce" });
  const page = await context.newPage();
  await page.goto(`${url}?${new URLSearchParams({ v: "1", live: "0", ...view })}`);
  await page.waitForLoadState("networkidle");
  if (point) await pointAt(page, point);
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await context.close();
}

/** The details of a box beside the pointer. */
async function pointAt(page, name) {
  const handle = await page.waitForFunction(
    (wanted) => window.__candela?.flamegraph()?.visible.find((box) => box.name === wanted),
    name,
  );
  const { x, y, w, h } = await handle.jsonValue();
  const canvas = await page.getByTestId("flamegraph-canvas").boundingBox();
  await page.mouse.move(canvas.x + x + w / 2, canvas.y + y + h / 2);
  await page.getByRole("tooltip").waitFor();
}

// One after another: side by side they would wait for each other.
await PICTURES.reduce((before, picture) => before.then(() => take(picture)), Promise.resolve());
await browser.close();
