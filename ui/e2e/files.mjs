// Walks the files screen in a real browser. Called by crates/cli/tests/host/screens.rs:
//   node e2e/files.mjs URL ELSEWHERE FOLDER [PICTURES]
// FOLDER has before.pb.gz and after.pb.gz of one type, stacks.folded, damaged.pb.gz, and expected.json with what the command line
// says of them. ELSEWHERE is a server on this machine that answers to the name files.test as well. Prints one JSON line; what did not behave is in `problems`.
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { barriersOf } from "./barriers.mjs";
import { carry } from "./drop.mjs";
import { launch, PATIENCE_MS } from "./browser.mjs";

const [url, elsewhereUrl, folder, pictures] = process.argv.slice(2);
const expected = JSON.parse(readFileSync(join(folder, "expected.json"), "utf8"));
const [BEFORE, AFTER, FOLDED, DAMAGED] = ["before.pb.gz", "after.pb.gz", "stacks.folded", "damaged.pb.gz"].map((name) => join(folder, name));

const problems = [];
const stores = [];

async function newPage(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("pageerror", (error) => problems.push(`page error: ${error.message}`));
  page.on("request", (request) => {
    const isOurs = request.url().startsWith(new URL(address).origin) || /^(data|blob):/.test(request.url());
    if (!isOurs) problems.push(`asked another host: ${request.url()}`);
    if (/\/(ingest|push|upload)/i.test(request.url())) stores.push(request.url());
  });
  return page;
}

const parameter = (page, name) => new URL(page.url()).searchParams.get(name);
const row = (page, path) => page.locator(`[data-testid=file-row][data-file="${basename(path)}"]`);
const sides = (page) => page.locator(".compare-total strong").allTextContents();

function expectEqual(what, actual, wanted) {
  if (actual !== wanted) problems.push(`${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(wanted)}`);
}

function expectTrue(what, isTrue) {
  if (!isTrue) problems.push(what);
}

async function picture(page, name) {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
}

async function noBarriers(page, name) {
  const { found } = await barriersOf(page);
  for (const barrier of found) problems.push(`${name}, ${barrier}`);
}

/** The picture of a file is there, and has this total. */
async function shows(page, total) {
  await page.waitForFunction((wanted) => window.__candela?.flamegraph()?.total === wanted, total);
}

async function drop(page, paths) {
  await page.getByTestId("screen-files").waitFor();
  const land = await carry(page, paths);
  await picture(page, "drop");
  await land();
}

const browser = await launch();
const page = await newPage(browser, url);
await page.goto(new URL("?v=1&live=0", url).href);
const appended = async (from) => (await (await from.request.get(new URL("api/v1/status", url).href)).json()).storage.appended;
const storedBefore = await appended(page);

// One file dropped anywhere is on the screen at once.
await drop(page, [AFTER]);
await shows(page, expected.after.total);
expectEqual("screen of a dropped file", parameter(page, "screen"), null);
expectTrue("its name is said", (await page.getByTestId("file-head").textContent()).includes("after.pb.gz"));
const [first] = expected.after.functions;
await page.locator(`[data-testid=top-row][data-function="${first.name}"]`).first().waitFor();
await picture(page, "file");
await noBarriers(page, "a file");

// Filters, focus and search ask about the file.
await page.goto(page.url());
await page.getByTestId("profile-state").getByText("not open in this page").waitFor();
await picture(page, "not-open");
await page.getByTestId("profile-state").getByRole("button", { name: "Choose the file" }).click();
await page.getByTestId("file-not-open").waitFor();
await page.getByTestId("file-input").setInputFiles(AFTER);
await shows(page, expected.after.total);
const filtered = page.waitForResponse((answer) => answer.url().includes("/api/v1/files/top") && answer.url().includes("focus="));
await page.evaluate((name) => {
  const address = new URL(location.href);
  address.searchParams.set("filters", `focus=fn:^${name.replaceAll(/[^\w]/g, ".")}$`);
  history.pushState(null, "", address);
  dispatchEvent(new PopStateEvent("popstate"));
}, first.name);
expectEqual("total of a focus", (await (await filtered).json()).total, first.total);
await page.goBack();
await shows(page, expected.after.total);
await page.getByTestId("export").click();
const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: /^Folded stacks/ }).click()]);
const folded = readFileSync(await download.path(), "utf8");
const sum = folded.trim().split("\n").reduce((total, line) => total + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
expectEqual("sum of the exported stacks", sum, expected.after.total);

// Lines have values; their text is what the reader opens, and nothing of the server.
await page.evaluate((name) => {
  const address = new URL(location.href);
  address.searchParams.set("view", "source");
  address.searchParams.set("fn", name);
  history.pushState(null, "", address);
  dispatchEvent(new PopStateEvent("popstate"));
}, first.name);
const missing = await page.getByTestId("source-missing").textContent();
expectTrue(`why there is no text: ${missing}`, missing.includes("for stored profiles only"));
await page.locator("[data-testid=code-row][data-kind=line]").first().waitFor();
await picture(page, "file-source");
await noBarriers(page, "the source of a file");
await page.goBack();
await shows(page, expected.after.total);

// Several at once are a list; what cannot be read says why.
await page.getByTestId("screen-files").click();
await page.getByTestId("file-input").setInputFiles([BEFORE, FOLDED, DAMAGED]);
for (const path of [BEFORE, AFTER, FOLDED]) await row(page, path).getByTestId("open-file").waitFor();
const alert = await row(page, DAMAGED).getByRole("alert").textContent();
expectTrue(`why it is damaged: ${alert}`, /gzip|damaged|cut off/.test(alert));
expectTrue("format of the folded file", (await row(page, FOLDED).textContent()).includes("folded"));
await picture(page, "files");
await noBarriers(page, "files");
await row(page, FOLDED).getByTestId("open-file").focus();
await page.keyboard.press("Enter");
await shows(page, expected.folded.total);
await picture(page, "folded");
await page.goBack();

// Two of them are one picture.
await row(page, BEFORE).getByRole("checkbox").check();
await row(page, AFTER).getByRole("checkbox").check();
const compared = page.waitForResponse((answer) => answer.url().includes("/api/v1/files/diff") && answer.ok());
await page.getByTestId("compare-files").click();
const difference = await (await compared).json();
expectEqual("total before", difference.before.total, expected.before.total);
expectEqual("total after", difference.after.total, expected.after.total);
expectEqual("what changed most", difference.functions[0].name, expected.changed);
await page.getByTestId("change-legend").waitFor();
await page.locator(`[data-testid=top-row][data-function="${expected.changed}"]`).first().waitFor();
expectEqual("one flame graph", await page.getByTestId("flamegraph").count(), 1);
await picture(page, "compare");
await noBarriers(page, "a comparison of files");
const [wasBefore, wasAfter] = await sides(page);
await page.getByTestId("swap-sides").click();
await page.waitForFunction((wanted) => document.querySelector(".compare-total strong")?.textContent === wanted, wasAfter);
expectEqual("sides after the swap", (await sides(page)).join(), [wasAfter, wasBefore].join());

// Nothing was stored so far. Then one is, because somebody asks for it.
expectEqual("uploads without being asked", stores.join(), "");
expectEqual("what was stored without being asked", await appended(page), storedBefore);
await page.getByTestId("screen-files").click();
await row(page, AFTER).getByTestId("store-file").click();
await page.getByTestId("store-service").fill("from-a-file");
await page.getByTestId("store-labels").fill("run=1");
await noBarriers(page, "storing");
await page.getByTestId("store-submit").click();
await page.getByTestId("stored").waitFor();
await picture(page, "stored");
await page.getByTestId("open-stored").click();
await page.waitForFunction(() => !new URLSearchParams(location.search).has("file"));
await shows(page, expected.after.total);
expectEqual("where it is stored", parameter(page, "query"), '{service_name="from-a-file"}');
expectEqual("uploads", stores.length, 1);

// Two themes and two widths, for people to look at.
if (pictures) {
  for (const [colorScheme, width] of [
    ["dark", 1280],
    ["light", 1920],
    ["dark", 1920],
  ]) {
    const other = await newPage(browser, url, { colorScheme, viewport: { width, height: 900 } });
    await other.goto(new URL("?v=1&live=0&screen=files", url).href);
    await other.getByTestId("choose-files").waitFor();
    await picture(other, `empty-${colorScheme}-${width}`);
    await other.getByTestId("file-input").setInputFiles([BEFORE, AFTER, FOLDED, DAMAGED]);
    await row(other, AFTER).getByTestId("open-file").waitFor();
    await row(other, BEFORE).getByRole("checkbox").check();
    await row(other, AFTER).getByRole("checkbox").check();
    await row(other, AFTER).getByTestId("store-file").click();
    await picture(other, `files-${colorScheme}-${width}`);
    await row(other, AFTER).getByTestId("open-file").click();
    await shows(other, expected.after.total);
    await picture(other, `file-${colorScheme}-${width}`);
    await other.goBack();
    await row(other, BEFORE).getByRole("checkbox").check();
    await row(other, AFTER).getByRole("checkbox").check();
    await other.getByTestId("compare-files").click();
    await other.getByTestId("change-legend").waitFor();
    await other.locator("[data-testid=top-row]").first().waitFor();
    await picture(other, `compare-${colorScheme}-${width}`);
  }
}
await browser.close();

// Another host is asked for leave first: nothing is sent before that.
const address = new URL(elsewhereUrl);
address.hostname = "files.test";
const elsewhere = await launch(["--host-resolver-rules=MAP files.test 127.0.0.1"]);
const remote = await newPage(elsewhere, address.href);
const posts = [];
remote.on("request", (request) => request.method() === "POST" && posts.push(request.url()));
await remote.goto(new URL("?v=1&live=0", address).href);
await drop(remote, [AFTER]);
await remote.getByTestId("files-consent").waitFor();
await picture(remote, "consent");
await noBarriers(remote, "consent");
const asked = await remote.getByTestId("files-consent").textContent();
expectTrue(`it says where to: ${asked}`, asked.includes(address.host) && asked.includes("candela open after.pb.gz"));
expectEqual("sent without leave", posts.join(), "");
await remote.getByTestId("send-files").click();
await shows(remote, expected.after.total);
await elsewhere.close();

process.stdout.write(`${JSON.stringify({ problems })}\n`);
