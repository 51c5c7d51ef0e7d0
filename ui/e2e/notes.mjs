// Drives deploys, notes and saved views on demo data:
//   node e2e/notes.mjs URL FOLDER
// The planted deploys are flags, also those that nobody annotated; versions are compared by a key, times around a flag by its menu; a note
// is kept, seen by another reader, and deleted; views and filters are saved and found again. Leaves screenshots in FOLDER.
// Prints one JSON line; what did not behave is in `problems`.
import { join } from "node:path";
import { barriersOf } from "./barriers.mjs";
import { launch, PATIENCE_MS } from "./browser.mjs";

const [url, folder] = process.argv.slice(2);
const SERVICE = "checkout";
const query = `{service_name="${SERVICE}"}`;
const browser = await launch();
const problems = [];

function expect(what, isTrue) {
  if (!isTrue) problems.push(what);
}

async function open(parameters, { width = 1280, colorScheme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("pageerror", (error) => problems.push(`page error: ${error.message}`));
  await page.goto(`${url}?${new URLSearchParams({ v: "1", live: "0", view: "flame", ...parameters })}`);
  return page;
}

/** Fields of the address once one of them is there. */
async function address(page, field, value) {
  await page.waitForFunction(([name, wanted]) => {
    const found = new URLSearchParams(location.search).get(name);
    return wanted === undefined ? found !== null : found === wanted;
  }, [field, value]);
  return new URL(page.url()).searchParams;
}

async function checkBarriers(page, place) {
  const { found } = await barriersOf(page);
  for (const barrier of found) problems.push(`${place}, ${barrier}`);
}

async function json(path) {
  return (await fetch(`${url}api/v1/${path}`)).json();
}

// The demo tells of its deploys, and the flag says so under the keyboard.
const { annotations } = await json("annotations?from=now-1d");
expect(`the demo annotated ${annotations.length} deploys, not 3`, annotations.length === 3);
const day = await open({ query, from: "now-1d" });
const flag = day.getByTestId("marker");
await flag.first().waitFor();
await day.waitForFunction(() => document.querySelectorAll("[data-testid=marker]").length === 1);
const said = await flag.getAttribute("aria-label");
expect(`the flag says ${said}`, /^deploy at .*: checkout v2$/.test(said));
await flag.focus();
await day.screenshot({ path: join(folder, "flag-light.png") });
await checkBarriers(day, "flags");

// Its menu compares equal times before and after.
const deploy = annotations.find(({ labels }) => labels.service_name === SERVICE);
await day.keyboard.press("Enter");
await day.getByTestId("notes").waitFor();
await day.screenshot({ path: join(folder, "flag-menu-light.png") });
await day.getByTestId("compare-around").click();
const around = await address(day, "screen", "compare");
const [from, to, baseFrom, baseTo] = ["from", "to", "base_from", "base_to"].map((name) => Number(around.get(name)));
expect(`after begins at ${from}, the deploy was at ${deploy.time}`, from === deploy.time && baseTo === deploy.time);
expect(`${to - from} ms are compared with ${baseTo - baseFrom}`, to - from === baseTo - baseFrom);
await day.goBack();
await address(day, "from", "now-1d");

// One key compares the version with the one before, and the planted regression is the largest change.
await flag.first().waitFor();
await day.keyboard.press("v");
const versions = await address(day, "base_query");
expect(`after is ${versions.get("query")}`, versions.get("query").includes('version="v2"'));
expect(`before is ${versions.get("base_query")}`, versions.get("base_query").includes('version="v1"'));
expect("versions are compared over different times", versions.get("to") - versions.get("from") === versions.get("base_to") - versions.get("base_from"));
await day.waitForFunction(() => (window.__candela?.flamegraph()?.visible.length ?? 0) > 1);
await day.screenshot({ path: join(folder, "versions-light.png") });
// From a view of the last hour, where one version runs only, it looks further back.
const hour = await open({ query, from: "now-1h" });
await hour.waitForFunction(() => (window.__candela?.flamegraph()?.visible.length ?? 0) > 1);
await hour.keyboard.press("v");
const found = await address(hour, "base_query");
expect(`from an hour: ${found}`, found.get("query").includes('version="v2"') && found.get("base_query").includes('version="v1"'));

// What nobody annotated is told by the data, and told to be.
for (const { id } of annotations) await fetch(`${url}api/v1/annotations?id=${id}`, { method: "DELETE" });
const derived = await open({ from: "now-1d" }, { width: 1920, colorScheme: "dark" });
await derived.waitForFunction(() => document.querySelectorAll("[data-testid=marker]").length === 3);
const labels = await derived.getByTestId("marker").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
expect(`flags say ${labels}`, labels.every((label) => label.endsWith(", seen in the data")) && labels[2].includes("checkout v1 → v2"));
await derived.getByTestId("open-notes").click();
await derived.getByTestId("note-form").waitFor();
await derived.screenshot({ path: join(folder, "notes-dark.png") });
await checkBarriers(derived, "sheet of notes");
await derived.keyboard.press("Escape");

// A note by the keyboard alone, about the service that is looked at.
const writer = await open({ query, from: "now-1h" });
await writer.waitForFunction(() => (window.__candela?.flamegraph()?.visible.length ?? 0) > 1);
await writer.keyboard.press("a");
await writer.getByTestId("note-text").waitFor();
await writer.waitForFunction(() => document.activeElement?.matches("[data-testid=note-text]"));
await writer.keyboard.type("load test, see #42");
await writer.getByTestId("note-kind").selectOption("config");
await writer.getByTestId("note-time").fill("now-30m");
await writer.getByTestId("note-end").fill("now-20m");
await writer.screenshot({ path: join(folder, "note-form-light.png") });
await writer.getByTestId("note-keep").click();
await writer.getByTestId("note").filter({ hasText: "load test" }).waitFor();
await writer.getByTestId("note-time").fill("yesterday");
await writer.getByTestId("note-text").fill("no time");
await writer.getByTestId("note-keep").click();
await writer.getByRole("alert").filter({ hasText: "RFC 3339" }).waitFor();
await writer.keyboard.press("Escape");
await writer.getByTestId("marker").first().waitFor();
await writer.screenshot({ path: join(folder, "note-light.png") });

// Another reader sees it, but not where another service is looked at.
const reader = await open({ query, from: "now-1h" }, { colorScheme: "dark" });
await reader.getByTestId("marker").first().waitFor();
await reader.screenshot({ path: join(folder, "note-dark.png") });
const { annotations: ofCart } = await json(`annotations?from=now-1h&query=${encodeURIComponent('{service_name="cart"}')}`);
expect("a note of one service is shown at another", ofCart.length === 0);

// Deleting asks first.
await writer.getByTestId("marker").first().click();
await writer.getByTestId("note-remove").click();
const { annotations: still } = await json("annotations?from=now-1h");
expect("a note was deleted without a question", still.length === 1);
await writer.getByTestId("note-remove-confirm").click();
await writer.waitForFunction(() => document.querySelectorAll("[data-testid=marker]").length === 0);
await writer.keyboard.press("Escape");

// A view that moves with the time, and one that does not.
await writer.getByTestId("open-views").click();
await writer.getByTestId("view-name").fill("checkout, moving");
await writer.getByTestId("view-save").click();
await writer.getByTestId("saved-view").filter({ hasText: "checkout, moving" }).waitFor();
await writer.getByTestId("view-name").fill("checkout, fixed");
await writer.getByTestId("view-fixed").check();
await writer.getByTestId("view-save").click();
await writer.getByTestId("saved-view").filter({ hasText: "checkout, fixed" }).waitFor();
await writer.screenshot({ path: join(folder, "views-light.png") });
await checkBarriers(writer, "saved views");
const { views } = await json("views");
const saved = Object.fromEntries(views.map((view) => [view.name, new URLSearchParams(view.address)]));
expect(`moving: ${saved["checkout, moving"]}`, (saved["checkout, moving"].get("from") ?? "now-1h") === "now-1h");
expect(`fixed: ${saved["checkout, fixed"]}`, /^\d{13}$/.test(saved["checkout, fixed"].get("from")));

// Found by name from anywhere.
const elsewhere = await open({ screen: "status" });
await elsewhere.getByTestId("screen-status").waitFor();
await elsewhere.keyboard.press("Control+k");
await elsewhere.getByTestId("palette-input").fill("checkout, fixed");
await elsewhere.getByRole("option").filter({ hasText: "saved view" }).first().waitFor();
await elsewhere.keyboard.press("Enter");
await address(elsewhere, "from", saved["checkout, fixed"].get("from"));
expect("the saved view has another selector", new URL(elsewhere.url()).searchParams.get("query") === query);
// Deleted after a question.
await elsewhere.getByTestId("open-views").click();
const entry = elsewhere.getByTestId("saved-view").filter({ hasText: "checkout, moving" });
await entry.getByRole("button", { name: "Delete checkout, moving" }).click();
await elsewhere.getByTestId("view-remove-confirm").click();
await elsewhere.waitForFunction(() => document.querySelectorAll("[data-testid=saved-view]").length === 1);

// Filters are saved beside the presets, and added to those that are there.
const filtered = await open({ query, filters: "hide=pkg:^runtime" });
await filtered.getByTestId("filter-presets").click();
await filtered.getByTestId("filters-name").fill("no runtime");
await filtered.getByTestId("filters-save").click();
await filtered.getByTestId("saved-view").waitFor();
await filtered.screenshot({ path: join(folder, "filters-light.png") });
const other = await open({ query, filters: "ignore=fn:x" });
await other.getByTestId("filter-presets").click();
await other.getByTestId("saved-view").getByRole("button", { name: /no runtime/ }).first().click();
const filters = await address(other, "filters", "ignore=fn:x\nhide=pkg:^runtime");
expect(`filters are ${filters.get("filters")}`, filters.get("query") === query);

await browser.close();
process.stdout.write(`${JSON.stringify({ deploys: annotations.length, problems })}\n`);
