// Takes a picture of every screen in both themes and at two widths, to be looked at by a person:
//   node e2e/gallery.mjs URL FOLDER [NAME…]
// of a `candela demo --seed 1`; NAME chooses screens. GALLERY_FILE names a recording with times of samples (`candela record -o`), for
// the screens of files and of the chart. Prints one JSON line: what went beyond the right edge, was cut off, or was said in the
// console is in `problems`.
import { join } from "node:path";
import { launch, PATIENCE_MS } from "./browser.mjs";

const [url, folder, ...chosen] = process.argv.slice(2);
const recording = process.env.GALLERY_FILE;
const WIDTHS = [1280, 1920];
const THEMES = ["light", "dark"];
const HEIGHT = 900;

const SERVICE = { query: '{service_name="checkout"}' };
const FLAME = "[data-testid=flamegraph]:not([hidden])";
const press = (key, shown) => async (page) => {
  await page.keyboard.press(key);
  await page.locator(shown).first().waitFor();
};
const click = (testId, shown) => async (page) => {
  await page.getByTestId(testId).first().click();
  if (shown) await page.locator(shown).first().waitFor();
};

/** What the address says, what is there when it is drawn, and what is done then. */
const SCREENS = {
  services: [{ screen: "services" }, "[data-testid=services-row]"],
  profile: [SERVICE, FLAME],
  "profile-of-all": [{}, FLAME],
  flame: [{ ...SERVICE, view: "flame" }, FLAME],
  table: [{ ...SERVICE, view: "table" }, "[data-testid=top-row]"],
  tree: [{ ...SERVICE, view: "tree" }, "[data-testid=tree-row]"],
  sandwich: [{ ...SERVICE, view: "sandwich", fn: "encoding/json.stringEncoder" }, ".sandwich-middle"],
  "sandwich-without": [{ ...SERVICE, view: "sandwich" }, "[data-testid=sandwich]"],
  "chart-without-times": [{ ...SERVICE, view: "chart" }, "[data-testid=no-times]"],
  "source-missing": [{ ...SERVICE, view: "source", fn: "encoding/json.stringEncoder" }, "[data-testid=source]"],
  search: [{ ...SERVICE, search: "json|pgx" }, FLAME],
  filters: [{ ...SERVICE, filters: "hide=kind:kernel\n!focus=fn:main\nshow_from=fn:PlaceOrder" }, FLAME],
  wall: [{ ...SERVICE, type: "wall" }, "[data-testid=reason-legend]"],
  waits: [{ ...SERVICE, type: "off_cpu" }, "[data-testid=reason-legend]"],
  memory: [{ ...SERVICE, type: "inuse" }, FLAME],
  nobody: [{ query: '{service_name="nobody"}' }, "[data-testid=profile-state]"],
  "bad-selector": [{ query: '{service_name="check' }, "[data-testid=profile-state]"],
  compare: [{ screen: "compare", ...SERVICE }, "[data-testid=change-legend]"],
  "compare-robust-new": [{ screen: "compare", ...SERVICE, norm: "robust", changes: "new" }, "[data-testid=change-legend]"],
  "compare-parts": [{ screen: "compare", ...SERVICE }, "[data-testid=change-legend]", click("change-parts", ".change-parts-panel")],
  labels: [{ screen: "labels", ...SERVICE, by: "region" }, ".label-grid li"],
  files: [{ screen: "files" }, "[data-testid=files-screen]"],
  status: [{ screen: "status" }, "[data-testid=status-storage]"],
  "status-edit": [{ screen: "status" }, "[data-testid=fleet-edit]", click("fleet-edit", "[data-testid=document-text]")],
  help: [SERVICE, FLAME, press("?", "dialog[open]")],
  palette: [SERVICE, FLAME, press("Control+k", "[data-testid=palette]")],
  "profile-chooser": [SERVICE, FLAME, press("w", "[data-testid=profile-chooser]")],
  export: [SERVICE, FLAME, press("e", "[role=dialog], [role=menu]")],
  note: [SERVICE, FLAME, press("a", "[data-testid=note-form]")],
  quality: [SERVICE, FLAME, click("quality-samples", "[role=dialog]")],
};
const OF_A_FILE = {
  "file-chart": [{ view: "chart" }, "[data-testid=chart-canvas]"],
  "file-both": [{ view: "both" }, FLAME],
};

async function open(browser, theme, width, parameters) {
  const context = await browser.newContext({ viewport: { width, height: HEIGHT }, colorScheme: theme, timezoneId: "UTC", reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(`${url}?${new URLSearchParams({ v: "1", live: "0", from: "now-6h", ...parameters })}`);
  return page;
}

/** Texts whose box is narrower than they are, without an ellipsis that says so; and the page's own overflow. */
function clipped() {
  const beyond = document.documentElement.scrollWidth - innerWidth;
  const found = beyond > 0 ? [`${beyond} px beyond the right edge`] : [];
  for (const element of document.querySelectorAll("button, label, th, td, h1, h2, h3, p, span, a, li, dt, dd, strong")) {
    if (element.children.length > 0 || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    if (style.overflowX === "visible" || style.textOverflow === "ellipsis" || style.display === "inline") continue;
    // What only a screen reader gets is one pixel wide.
    if (element.clientWidth > 1 && element.scrollWidth > element.clientWidth + 1) found.push(`cut off: ${element.textContent.slice(0, 60)}`);
  }
  return found;
}

const browser = await launch();
const problems = [];
const isChosen = (name) => chosen.length === 0 || chosen.includes(name);

async function take(name, theme, width, [parameters, shown, act], before) {
  const page = await open(browser, theme, width, before ? { screen: "files" } : parameters);
  const picture = `${name}-${theme}-${width}`;
  page.on("pageerror", (error) => problems.push(`${picture}: page error: ${error.message}`));
  page.on("console", (message) => {
    // The browser tells of each answer that is an error, which two screens are about.
    if (message.type() === "error" && !/status of 4\d\d/.test(message.text())) problems.push(`${picture}: console: ${message.text()}`);
  });
  try {
    await before?.(page, parameters);
    await page.locator(shown).first().waitFor();
    await page.waitForLoadState("networkidle");
    await act?.(page);
    for (const what of await page.evaluate(clipped)) problems.push(`${picture}: ${what}`);
  } catch (error) {
    problems.push(`${picture}: ${error.message.split("\n")[0]}`);
  }
  await page.screenshot({ path: join(folder, `${picture}.png`), animations: "disabled" });
  await page.context().close();
}

async function openFile(page, parameters) {
  await page.getByTestId("file-input").setInputFiles([recording]);
  await page.locator(FLAME).waitFor();
  await page.evaluate((more) => {
    const address = new URL(location.href);
    for (const [key, value] of Object.entries(more)) address.searchParams.set(key, value);
    history.pushState(null, "", address);
    dispatchEvent(new PopStateEvent("popstate"));
  }, parameters);
}

const jobs = [];
for (const width of WIDTHS) {
  for (const theme of THEMES) {
    for (const [name, screen] of Object.entries(SCREENS)) if (isChosen(name)) jobs.push([name, theme, width, screen]);
    for (const [name, screen] of Object.entries(recording ? OF_A_FILE : {})) if (isChosen(name)) jobs.push([name, theme, width, screen, openFile]);
  }
}
// One after another: side by side they would wait for each other.
await jobs.reduce((before, job) => before.then(() => take(...job)), Promise.resolve());
await browser.close();
process.stdout.write(`${JSON.stringify({ pictures: jobs.length, problems }, null, 1)}\n`);
