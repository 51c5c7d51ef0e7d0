// The first walk of somebody who has read nothing, by what stands on the screen alone:
//   node e2e/newcomer.mjs URL
// from the address in the README to the name of the hottest function, to the difference of two ranges, and to a shared link in
// another browser profile. Only roles and words that can be seen or heard are used, and each action counts. Prints one JSON line:
// what was found, in how many actions; what did not behave is in `problems`.
import { launch, PATIENCE_MS } from "./browser.mjs";

const [url] = process.argv.slice(2);
/** More than this and the way is not plain. */
const MOST_ACTIONS = { hottest: 0, service: 1, difference: 2, link: 1 };

const browser = await launch();
const problems = [];
const actions = {};
let current = "hottest";

function expect(what, isTrue) {
  if (!isTrue) problems.push(what);
}

async function person() {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("pageerror", (error) => problems.push(`page error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(`console: ${message.text()}`);
  });
  return page;
}

/** What is done next counts towards this. */
function goal(name) {
  current = name;
  actions[name] = 0;
}

async function act(doing) {
  actions[current] += 1;
  await doing();
}

/** The name in the first row of the table. */
async function firstFunction(page, table) {
  const row = page.getByRole("grid", { name: table }).getByRole("row").nth(1);
  await row.waitFor();
  return (await row.getAttribute("title")).split("\n")[0];
}

/** What one side costs, as it is written there. */
async function costOf(page, name) {
  const side = page.getByRole("region", { name });
  await side.getByText(/samples/).waitFor();
  return /[\d.]+ cores\s+[\d.]+ k? ?samples/.exec(await side.innerText())?.[0].replaceAll(/\s+/g, " ");
}

/** By the server's own sums. */
async function mostExpensive(query) {
  const answer = await fetch(`${url}api/v1/top?${new URLSearchParams({ query, sort: "self", limit: "1" })}`);
  return (await answer.json()).functions[0].name;
}

/** Until the table begins with this function. */
async function beginsWith(page, table, name) {
  const deadline = Date.now() + PATIENCE_MS;
  while (Date.now() < deadline) {
    if ((await firstFunction(page, table)) === name) return;
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
  }
  problems.push(`${name} does not stand first in the table`);
}

// The hottest function of everything stands on the first page.
const reader = await person();
goal("hottest");
await reader.goto(url);
await reader.getByRole("heading", { name: "All services" }).waitFor();
const hottest = await mostExpensive("{}");
await beginsWith(reader, /^Functions by cost/, hottest);
const ordered = reader.getByRole("columnheader", { name: /^Self/ });
expect("the table does not begin with the most expensive", (await ordered.getAttribute("aria-sort")) === "descending");

// That of one service, one click on.
goal("service");
const services = reader.getByRole("complementary", { name: "Services" });
const first = services.getByRole("button").nth(1);
const service = await first.getAttribute("title");
await act(() => first.click());
await reader.getByRole("heading", { name: service, exact: true }).waitFor();
const hottestOfService = await mostExpensive(`{service_name="${service}"}`);
await beginsWith(reader, /^Functions by cost/, hottestOfService);

// What has changed: a range out of the line, as the line itself says, and one word of the navigation. It is compared with as much
// time just before.
goal("difference");
await reader.getByText("Drag to choose a range").waitFor();
const line = await reader.getByRole("img", { name: /^Cost over time/ }).boundingBox();
await act(async () => {
  await reader.mouse.move(line.x + line.width * 0.5, line.y + line.height / 2);
  await reader.mouse.down();
  await reader.mouse.move(line.x + line.width * 0.7, line.y + line.height / 2, { steps: 5 });
  await reader.mouse.up();
});
await reader.getByRole("button", { name: /^\d{4}-\d\d-\d\d / }).waitFor();
await act(() => reader.getByRole("link", { name: "Compare", exact: true }).click());
const costs = [await costOf(reader, "Before"), await costOf(reader, "After")];
const changed = await firstFunction(reader, /^Functions by change/);
await reader.getByText(/what part of the whole each is/).waitFor();

// The link of all that, and what somebody else sees who opens it.
goal("link");
await act(() => reader.getByRole("button", { name: "Copy link to this view" }).click());
await reader.getByText("Copied a link with fixed times").waitFor();
const link = await reader.evaluate(() => navigator.clipboard.readText());
const colleague = await person();
await colleague.goto(link);
const received = [await costOf(colleague, "Before"), await costOf(colleague, "After")];
expect(`${costs} became ${received} in the link`, costs.every(Boolean) && costs.join() === received.join());
expect("the link has other changes", (await firstFunction(colleague, /^Functions by change/)) === changed);
expect("the link is not of the service", (await colleague.getByRole("combobox", { name: "Service" }).inputValue()) === service);

for (const [name, most] of Object.entries(MOST_ACTIONS)) {
  expect(`${name} takes ${actions[name]} actions, and not ${most}`, actions[name] <= most);
}
await browser.close();
process.stdout.write(`${JSON.stringify({ hottest, service, hottestOfService, costs, changed, actions, problems })}\n`);
