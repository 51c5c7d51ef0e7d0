// Changes the fleet's document in the window:
//   node e2e/fleet.mjs URL [FOLDER]
// of a server without one, where whoever asks may change it. A broken document and one that breaks a rule are told with their places, the
// right one is shown as a difference, asked for and applied; somebody else is quicker once, by the API; an old version is applied once more.
// At the end the fleet has the empty document. Leaves screenshots in FOLDER where one is named. Prints one JSON line; what did not behave is
// in `problems`.
import { join } from "node:path";
import { barriersOf } from "./barriers.mjs";
import { launch, PATIENCE_MS } from "./browser.mjs";

const [url, folder] = process.argv.slice(2);
const PERSISTENCE = `${url}api/v1/fleet/persistence`;
const browser = await launch();
const problems = [];

function expect(what, isTrue) {
  if (!isTrue) problems.push(what);
}

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("pageerror", (error) => problems.push(`page error: ${error.message}`));
  await page.goto(`${url}?v=1&live=0&screen=status`);
  await page.getByTestId("fleet-edit").waitFor();
  return page;
}

async function look(page, name) {
  if (folder) await page.screenshot({ path: join(folder, `fleet-${name}.png`) });
  const { found } = await barriersOf(page);
  for (const barrier of found) problems.push(`${name}, ${barrier}`);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(`${name}: ${overflow} px beyond the right edge`, overflow <= 0);
}

/** The summary once it says so, whole. */
async function summary(page, text) {
  const line = page.getByTestId("document-summary").filter({ hasText: text });
  await line.waitFor();
  await page.locator(".document-report[aria-busy=false]").waitFor();
  return line.innerText();
}

const selected = (page) => page.getByTestId("document-text").evaluate((area) => area.value.slice(area.selectionStart, area.selectionEnd));
const versionLine = (page, number) => page.getByTestId("fleet-version").filter({ hasText: `Version ${number}` }).waitFor();

async function byApi(document, version) {
  const response = await fetch(PERSISTENCE, {
    method: "PUT",
    body: JSON.stringify(document),
    headers: { "content-type": "application/json", "if-match": `"${version}"` },
  });
  if (!response.ok) throw new Error(`version ${version} could not be changed: ${await response.text()}`);
  return response.json();
}

const daemon = (hz, exportTo = "s3://profiles") => ({
  suspended: true,
  observability_daemons: [{ perf_collector: { export_to: exportTo, bucket_subdirectory: "perf-data", perf_polling_frequency_hz: hz } }],
});
const text = (document) => JSON.stringify(document, null, 2);

const { version: before } = await (await fetch(PERSISTENCE)).json();
expect(`the walk begins at version ${before}`, before === 0);

// A keyboard is enough to open it; the text has the focus.
const page = await open();
await look(page, "none");
await page.getByTestId("fleet-edit").focus();
await page.keyboard.press("Enter");
const area = page.getByTestId("document-text");
await area.waitFor();
await page.waitForFunction(() => document.activeElement?.matches("[data-testid=document-text]"));
expect(`the first text is ${await area.inputValue()}`, (await area.inputValue()).trim() === "{}");
await summary(page, "Nothing to apply");
const apply = page.getByTestId("document-apply");
expect("nothing can be applied", await apply.isDisabled());

// Broken JSON, then a rule: each with the place, which is selected.
await page.keyboard.press("Control+a");
await page.keyboard.type('{\n"suspended": tru');
const broken = await summary(page, "1 problem");
expect(`what is read out is ${broken}`, broken.includes("line 2"));
expect("what is broken can be applied", await apply.isDisabled());
expect("the text does not say that it is wrong", (await area.getAttribute("aria-invalid")) === "true");
await area.fill(text(daemon(5000, "ftp://profiles")));
await summary(page, "2 problems");
await look(page, "problems");
const problem = page.getByTestId("document-problems").getByRole("button").filter({ hasText: "export_to" });
expect(`the problem says ${await problem.innerText()}`, (await problem.innerText()).startsWith("observability_daemons[0].perf_collector.export_to:"));
await problem.click();
expect(`${await selected(page)} is selected`, (await selected(page)) === '"export_to": "ftp://profiles"');

// The right one: a difference, a question, and back from it with Escape.
await area.fill(text(daemon(99)));
await summary(page, "2 changes");
const diff = await page.getByTestId("document-diff").innerText();
expect(`the difference is ${diff}`, diff.includes('@ ["suspended"]\n+ true'));
await look(page, "difference");
await apply.click();
const confirm = page.getByTestId("document-confirm");
await confirm.waitFor();
expect("the difference is out of sight", await page.getByTestId("document-diff").isVisible());
expect("the text can be changed below the question", await area.isHidden());
await look(page, "question");
await page.keyboard.press("Escape");
await area.waitFor({ state: "visible" });
expect("Escape loses the text", (await area.inputValue()) === text(daemon(99)));
await apply.click();
await confirm.click();
await versionLine(page, 1);
await page.getByTestId("fleet-document").waitFor({ state: "detached" });
await page.waitForFunction(() => document.activeElement?.matches("[data-testid=fleet-edit]"));
const first = await (await fetch(PERSISTENCE)).json();
expect(`applied is ${text(first)}`, first.version === 1 && first.document.observability_daemons[0].perf_collector.perf_polling_frequency_hz === 99);

// Closing keeps what was typed; somebody else is quicker, and neither text is lost.
await page.getByTestId("fleet-edit").click();
await area.fill(text(daemon(49)));
await summary(page, "1 change");
await page.keyboard.press("Escape");
await page.getByTestId("fleet-edit").filter({ hasText: "Go on editing" }).click();
expect("closing loses the text", (await area.inputValue()) === text(daemon(49)));
await summary(page, "1 change");
await apply.click();
await byApi(daemon(199), 1);
// Whichever comes first: the page sees the new version by itself, or the server refuses.
await confirm.click({ timeout: 2000 }).catch(() => undefined);
const conflict = page.getByTestId("document-conflict");
await conflict.waitFor();
expect(`the conflict says ${await conflict.innerText()}`, /applied version 2 at/.test(await conflict.innerText()));
expect("theirs can be overwritten unseen", await apply.isDisabled());
await look(page, "conflict");
await page.getByTestId("document-theirs").click();
await summary(page, "Nothing to change: version 2");
expect("theirs is not there", (await area.inputValue()).includes("199"));
await page.getByTestId("document-put-back").click();
await summary(page, "1 change");
expect("mine is lost", (await area.inputValue()) === text(daemon(49)));
const against = await page.getByTestId("document-diff").innerText();
expect(`the difference to theirs is ${against}`, against.includes("- 199\n+ 49"));
await apply.click();
await confirm.click();
await versionLine(page, 3);

// Back to an old version, with the same difference and question.
await page.getByTestId("fleet-history").locator("summary").click();
await page.getByRole("button", { name: "Roll back to version 1", exact: true }).click();
await summary(page, "1 change");
const back = await page.getByTestId("document-diff").innerText();
expect(`the way back is ${back}`, back.includes("- 49\n+ 99"));
await apply.click();
await look(page, "roll-back");
await confirm.click();
await versionLine(page, 4);
await page.getByTestId("fleet-version").filter({ hasText: "version 1 once more" }).waitFor();
await look(page, "history");
const last = await (await fetch(PERSISTENCE)).json();
expect(`rolled back to ${text(last)}`, last.rolled_back_to === 1 && JSON.stringify(last.document) === JSON.stringify(first.document));

// What a daemon says of itself stands beside what it does.
const note = "limit.cpu 250m is kept by the sampler, which takes fewer samples than asked for when it must";
const report = { node: "node-1", version: 4, daemons: [{ id: "perf-collector-0123456789abcdef", state: "running", stored: 2, notes: [note] }] };
await fetch(`${url}api/v1/fleet/report`, { method: "POST", body: JSON.stringify(report), headers: { "content-type": "application/json" } });
await page.reload();
const nodes = page.getByTestId("fleet-nodes").filter({ hasText: note });
await nodes.waitFor();
expect(`the node is ${await nodes.innerText()}`, (await nodes.innerText()).includes("2 in the store"));
await look(page, "nodes");

// Narrow, wide, dark, in forced colours.
for (const [name, options] of [
  ["narrow", { viewport: { width: 390, height: 800 } }],
  ["wide-dark", { viewport: { width: 1920, height: 1080 }, colorScheme: "dark" }],
  ["forced", { forcedColors: "active" }],
]) {
  const other = await open(options);
  await other.getByTestId("fleet-edit").click();
  await other.getByTestId("document-text").fill(text(daemon(5000)));
  await summary(other, "1 problem");
  await look(other, `${name}-problem`);
  await other.getByTestId("document-text").fill(text(daemon(25)));
  await summary(other, "1 change");
  await other.getByTestId("document-apply").click();
  await other.getByTestId("document-confirm").waitFor();
  expect(`${name}: the question is out of sight`, await other.getByTestId("document-confirm").isVisible());
  await look(other, `${name}-question`);
  await other.context().close();
}
const { version } = await byApi({}, 4);
await browser.close();
process.stdout.write(`${JSON.stringify({ version, problems })}\n`);
