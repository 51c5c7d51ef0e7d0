// Walks from the services to the chart of one, its export and back by a reload, all below a path. Called by crates/cli/tests/host/screens.rs:
//   node e2e/prefix.mjs URL SERVICE FOLDER
// The path of URL is a prefix of the server, and SERVICE has times of samples in the last ten minutes. Leaves the export in FOLDER. Prints
// one JSON line: the command for a terminal, its total, and `problems`, of which one is any request beside the prefix.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { launch, PATIENCE_MS } from "./browser.mjs";

const [url, service, folder] = process.argv.slice(2);
const RANGE = "from=now-10m";
const browser = await launch();
const problems = [];
const asked = [];
const context = await browser.newContext({
  viewport: { width: 1440, height: 900 },
  reducedMotion: "reduce",
  permissions: ["clipboard-read", "clipboard-write"],
});
const page = await context.newPage();
page.setDefaultTimeout(PATIENCE_MS);
page.on("pageerror", (error) => problems.push(`page error: ${error.message}`));
page.on("console", (message) => message.type() === "error" && problems.push(`console: ${message.text()}`));
page.on("request", (request) => /^(data|blob):/.test(request.url()) || asked.push(request.url()));
page.on("response", (response) => response.status() >= 400 && problems.push(`${response.url()} answers ${response.status()}`));

function expect(what, isTrue) {
  if (!isTrue) problems.push(what);
}

async function lanes() {
  await page.waitForFunction(() => (window.__candela?.chart().length ?? 0) > 10);
  return page.getByTestId("lane").count();
}

// Without its last slash the address leads to the page all the same, and keeps what it asks.
await page.goto(`${url.replace(/\/$/, "")}?v=1&live=0&screen=services&${RANGE}`);
await page.getByTestId("services-row").filter({ hasText: service }).first().click();
await page.locator("[data-testid=flamegraph]:not([hidden])").waitFor();
await page.keyboard.press("6");
const drawn = await lanes();

await page.keyboard.press("y");
await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith("http"));
const link = await page.evaluate(() => navigator.clipboard.readText());
expect(`the link is ${link}`, link.startsWith(`${url}?`));
// From here on of times that stand: what is exported is what the server says once more.
await page.goto(link);
await lanes();
await page.getByTestId("export").click();
const entry = page.getByTestId("export-folded");
const [download] = await Promise.all([page.waitForEvent("download"), entry.click()]);
asked.push(download.url());
const path = join(folder, "below-a-prefix.folded");
await download.saveAs(path);
const lines = readFileSync(path, "utf8").trim().split("\n");
const total = lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
await page.waitForFunction((wanted) => window.__candela.flamegraph().total === wanted, total);

await page.keyboard.press("Y");
await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith("candela query"));
const command = await page.evaluate(() => navigator.clipboard.readText());
await page.reload();
const again = await lanes();
expect(`${again} lanes after the reload, ${drawn} before`, again === drawn && drawn > 2);
expect("the address is that of the link", page.url() === link);

const beside = asked.filter((address) => !address.startsWith(url) && !address.startsWith(`${url.replace(/\/$/, "")}?`));
expect(`asked beside the prefix: ${beside.slice(0, 3)}`, beside.length === 0);
const chunks = asked.filter((address) => address.startsWith(`${url}assets/chart-pane`));
expect(`the chart was loaded below the prefix: ${chunks}`, chunks.length > 0);
await browser.close();
process.stdout.write(`${JSON.stringify({ command, total, problems })}\n`);
