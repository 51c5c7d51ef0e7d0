// Looks for barriers on every screen, and in everything that opens over one, in both themes. Called by crates/cli/tests/host/screens.rs:
//   node e2e/axe.mjs URL SERVICE
// Prints one JSON line: how many rules were applied, and in `problems` each violation with the element it is on.
import { barriersOf } from "./barriers.mjs";
import { launch, PATIENCE_MS } from "./browser.mjs";

const [url, service] = process.argv.slice(2);
const SERVICE = { query: `{service_name="${service}"}` };
const FLAME = "[data-testid=flamegraph]:not([hidden])";
/** It has callers and callees, and values of its lines. */
const FUNCTION = "encoding/json.stringEncoder";

/** What the address says, and what is there when it is drawn. */
const VIEWS = {
  services: [{ screen: "services" }, "[data-testid=services-row]"],
  "all services": [{}, FLAME],
  "profile, both": [{ ...SERVICE, view: "both" }, "[data-testid=top-row]"],
  "profile, table": [{ ...SERVICE, view: "table" }, "[data-testid=top-row]"],
  "profile, tree": [{ ...SERVICE, view: "tree" }, "[data-testid=tree-row]"],
  "profile, sandwich": [{ ...SERVICE, view: "sandwich", fn: FUNCTION }, ".sandwich-middle"],
  "profile, sandwich without a function": [{ ...SERVICE, view: "sandwich" }, "[data-testid=sandwich]"],
  "profile, chart": [{ query: '{service_name="gateway"}', view: "chart", from: "now-5m" }, "[data-testid=chart-canvas]"],
  "profile, chart without times": [{ ...SERVICE, view: "chart" }, "[data-testid=no-times]"],
  "profile, source": [{ ...SERVICE, view: "source", fn: FUNCTION }, "[data-testid=code-row]"],
  "profile, source without a function": [{ ...SERVICE, view: "source" }, ".source-choose"],
  "profile, waits": [{ ...SERVICE, type: "off_cpu", view: "flame" }, "[data-testid=reason-legend]"],
  filters: [{ ...SERVICE, filters: "hide=kind:kernel\n!focus=fn:main" }, "[data-testid=filter-chip]"],
  "a search": [{ ...SERVICE, search: "json" }, "[data-testid=search-share] strong"],
  compare: [{ screen: "compare", ...SERVICE }, "[data-testid=change-legend]"],
  labels: [{ screen: "labels", ...SERVICE, by: "host" }, "[data-testid=label-card]"],
  "no such label": [{ screen: "labels", ...SERVICE, by: "nothing" }, "[data-testid=no-values]"],
  files: [{ screen: "files" }, "[data-testid=files-screen]"],
  "a file that is not open": [{ screen: "files", file: `${"0".repeat(32)}/x.pb.gz` }, "[data-testid=file-not-open]"],
  status: [{ screen: "status" }, "[data-testid=status-storage]"],
  "nothing found": [{ query: '{service_name="nobody"}' }, "[data-testid=profile-state]"],
  "bad selector": [{ query: "{broken" }, "[data-testid=profile-state]"],
};

const press = (key) => (page) => page.keyboard.press(key);
const click = (testId) => (page) => page.getByTestId(testId).first().click();

/** What opens over the profile of the service, by what is done, and what is there then. */
const OVER_THE_PROFILE = {
  help: [press("?"), "dialog.help[open]"],
  palette: [press("Control+k"), "[data-testid=palette][open]"],
  "profile chooser": [press("w"), "[data-testid=profile-chooser][open]"],
  "sheet of notes": [press("a"), "[data-testid=note-form]"],
  "export menu": [click("export"), ".export-menu [role=dialog]"],
  "time picker": [click("range-label"), ".time-popover [role=dialog]"],
  "presets of filters": [click("filter-presets"), ".filter-preset"],
  "chooser of groups": [click("group-chooser"), ".group-list"],
  "list of services": [click("service-input"), "[role=listbox]"],
  "saved views": [click("open-views"), ".views-popover [role=dialog]"],
  "quality: samples": [click("quality-samples"), "[role=dialog]"],
  "quality: names": [click("quality-unsymbolized"), "[role=dialog]"],
  "quality: the data": [click("quality"), "[role=dialog]"],
  "menu of a box": [onBox((page, { x, y }) => page.mouse.click(x, y, { button: "right" })), ".frame-menu"],
  "tooltip of a box": [onBox((page, { x, y }) => page.mouse.move(x, y)), "[role=tooltip]"],
  "zoomed to a box": [onBox((page, { x, y }) => page.mouse.click(x, y)), "nav[aria-label=Zoom]"],
};

/** Does something at the middle of a box that is neither the root nor a sliver. */
function onBox(act) {
  return async (page) => {
    const box = await page.evaluate(() => window.__candela.flamegraph().visible.find(({ y, w }) => y > 40 && w > 100));
    const canvas = await page.getByTestId("flamegraph-canvas").boundingBox();
    await act(page, { x: canvas.x + box.x + box.w / 2, y: canvas.y + box.y + box.h / 2 });
  };
}

const browser = await launch();
const problems = [];
let rules = 0;
const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce" });
const page = await context.newPage();
page.setDefaultTimeout(PATIENCE_MS);

async function open(parameters, shown) {
  await page.goto(new URL(`?${new URLSearchParams({ v: "1", live: "0", ...parameters })}`, url).href);
  await page.locator(shown).first().waitFor();
  await page.waitForLoadState("networkidle");
}

async function look(name, show) {
  try {
    await show();
    const seen = await barriersOf(page);
    rules += seen.rules;
    for (const barrier of seen.found) problems.push(`${name}, ${barrier}`);
  } catch (error) {
    problems.push(`${name}: ${error.message.split("\n")[0]}`);
  }
}

for (const [name, [parameters, shown]] of Object.entries(VIEWS)) await look(name, () => open(parameters, shown));
await open({ screen: "status" }, "[data-testid=fleet-edit]");
await look("document of the fleet", async () => {
  await page.getByTestId("fleet-edit").click();
  await page.getByTestId("document-text").waitFor();
});
await open({ screen: "compare", ...SERVICE }, "[data-testid=change-legend]");
await look("where a change went", async () => {
  await page.getByTestId("change-parts").click();
  await page.locator(".change-parts-table").waitFor();
});
await open({ ...SERVICE, view: "flame" }, FLAME);
for (const [name, [act, shown]] of Object.entries(OVER_THE_PROFILE)) {
  await look(name, async () => {
    await act(page);
    await page.locator(shown).first().waitFor();
  });
  await page.keyboard.press("Escape");
  // A dialog that is still open would take the next key.
  await page.locator("dialog[open]").first().waitFor({ state: "hidden" });
}
await browser.close();
process.stdout.write(`${JSON.stringify({ rules, problems })}\n`);
