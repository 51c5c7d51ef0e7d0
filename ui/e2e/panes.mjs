// Drives what the panes tell of each kind of profile:
//   node e2e/panes.mjs URL SERVICE FOLDER
// SERVICE has CPU and off-CPU time with reasons. The legend of reasons is compared with the server's own sums, its entries filter,
// wall-clock time tells what runs from what waits, and the SQL can be copied. Leaves
// screenshots of both themes in FOLDER. Prints one JSON line; what did not behave is in `problems`.
import { join } from "node:path";
import { launch, PATIENCE_MS } from "./browser.mjs";

const [url, service, folder] = process.argv.slice(2);
const OFF_CPU = "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds";
const WALL = "wall:wall:nanoseconds:wall:nanoseconds";
const SHARE_OF_A_PERCENT = 0.06;
// The page and the server are asked at different moments: of a range that ends now each would answer for its own.
const to = Date.now();
const RANGE = { from: String(to - 3_600_000), to: String(to) };

const browser = await launch();
const problems = [];

async function open(colorScheme, width, search) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("pageerror", (error) => problems.push(`page error: ${error.message}`));
  const query = `{service_name="${service}"}`;
  await page.goto(`${url}?${new URLSearchParams({ v: "1", query, live: "0", view: "flame", ...RANGE, ...search })}`);
  return page;
}

async function total(type, filter) {
  const parameters = new URLSearchParams({ query: `{service_name="${service}"}`, type, format: "json", ...RANGE });
  if (filter) parameters.append(...filter);
  const answer = await fetch(`${url}api/v1/flamegraph?${parameters}`);
  return (await answer.json()).total;
}

/** Shares in the legend by the key of their entry, in percent. */
function legend(page) {
  return page.getByTestId("reason-legend").evaluate((list) =>
    Object.fromEntries(
      [...list.querySelectorAll("button")].map((button) => [
        button.dataset.testid.replace("legend-", ""),
        Number.parseFloat(button.lastElementChild.textContent.replace("<", "")),
      ]),
    ),
  );
}

function expect(what, isTrue) {
  if (!isTrue) problems.push(what);
}

// Off-CPU time: each reason has the share that the server's own sum gives it.
const waits = await open("light", 1280, { type: "off_cpu" });
await waits.getByTestId("reason-legend").waitFor();
const shares = await legend(waits);
const all = await total(OFF_CPU);
const sums = await Promise.all(
  Object.keys(shares)
    .filter((reason) => reason !== "")
    .map(async (reason) => [reason, await total(OFF_CPU, ["tagfocus", `off_cpu_reason=^${reason}$`])]),
);
for (const [reason, sum] of sums) {
  const expected = (100 * sum) / all;
  const isClose = Math.abs(expected - shares[reason]) <= SHARE_OF_A_PERCENT;
  expect(`${reason} has ${shares[reason]} %, the server says ${expected} %`, isClose);
}
await waits.screenshot({ path: join(folder, "off-cpu-light.png") });

// A box says what it waits for, and an entry of the legend keeps that alone.
const canvas = await waits.getByTestId("flamegraph-canvas").boundingBox();
await waits.mouse.move(canvas.x + canvas.width / 3, canvas.y + 30);
await waits.getByTestId("reason-mix").waitFor();
await waits.mouse.move(5, 5);
const [first] = Object.keys(shares);
await waits.getByTestId(`legend-${first}`).click();
await waits.waitForFunction(() => new URLSearchParams(location.search).get("filters")?.includes("off_cpu_reason"));
await waits.waitForFunction(() => document.querySelectorAll("[data-testid=reason-legend] button").length === 1);

// Wall-clock time: both halves are in one picture.
const wall = await open("dark", 1920, { type: "wall" });
await wall.getByTestId("legend-cpu").waitFor();
const parts = await legend(wall);
const onCpu = (100 * (await total("process_cpu:cpu:nanoseconds:cpu:nanoseconds"))) / (await total(WALL));
expect(`on CPU is ${parts.cpu} %, the server says ${onCpu} %`, Math.abs(onCpu - parts.cpu) <= SHARE_OF_A_PERCENT);
await wall.screenshot({ path: join(folder, "wall-dark.png") });

// Reasons are no choice where nothing waits; from a symptom to the type that tells them.
const cpu = await open("light", 1920, { type: "cpu" });
await cpu.getByTestId("color-select").waitFor();
await cpu.waitForFunction(() => window.__candela?.flamegraph()?.visible.length > 1);
const choices = await cpu.getByTestId("color-select").locator("option").allTextContents();
expect("reasons can be chosen for CPU time", !choices.includes("reason"));
await cpu.getByTestId("type-select").selectOption(OFF_CPU);
await cpu.getByTestId("reason-legend").waitFor();
const groups = await cpu.getByTestId("type-select").locator("optgroup").evaluateAll((all_) => all_.map(({ label }) => label));
expect(`types are not grouped: ${groups}`, groups.includes("Time"));

// The SQL is copied, whatever this server was built with.
await cpu.getByTestId("export").click();
await cpu.getByRole("button", { name: /SQL/ }).click();
await cpu.waitForFunction(async () => (await navigator.clipboard.readText()).includes("GROUP BY function_name"));
const statement = await cpu.evaluate(() => navigator.clipboard.readText());
expect("the SQL does not name the service", statement.includes(`samples.service_name = '${service}'`));

await browser.close();
process.stdout.write(`${JSON.stringify({ shares, parts, problems })}\n`);
