// Walks what the window says while an answer does not come, when it is cancelled, refused, or a part:
//   node e2e/waiting.mjs URL SERVICE [FOLDER]
// Answers are held back on their way; the rest is the server's own. Leaves pictures in FOLDER where one is named. Prints one JSON
// line; what did not behave is in `problems`.
import { join } from "node:path";
import { barriersOf } from "./barriers.mjs";
import { expect, walkComplaints } from "./complaint.mjs";

const [url, service, folder] = process.argv.slice(2);
const SERVICE = `{service_name="${service}"}`;
const RANGE = { from: "now-6h", to: "now" };

/** What each screen waits for at last, what stands there meanwhile, and what it shows when the answer has come. */
const SCREENS = {
  "the flame graph": [{ screen: "profile", query: SERVICE }, "flamegraph", "flame-skeleton", "[data-testid=flamegraph]:not([hidden])"],
  "the table": [{ screen: "profile", view: "table", query: SERVICE }, "top", "rows-skeleton", "[data-testid=top-row]"],
  "the call tree": [{ screen: "profile", view: "tree", query: SERVICE }, "flamegraph", "flame-skeleton", "[data-testid=tree-row]"],
  "the comparison": [{ screen: "compare", query: SERVICE }, "diff", "flame-skeleton", "[data-testid=flamegraph]:not([hidden])"],
  "the services": [{ screen: "services" }, "services", "rows-skeleton", "[data-testid=services-row]"],
  "the labels": [{ screen: "labels", query: SERVICE, by: "host" }, "series", "rows-skeleton", ".label-grid li"],
  "the status": [{ screen: "status" }, "status", "rows-skeleton", ".status-body section"],
};

/** Keeps the answers of some routes back. */
async function hold(page, route) {
  const held = [];
  const pattern = new RegExp(`/api/v1/${route}(\\?|$)`);
  let isOpen = false;
  await page.route(pattern, (answer) => (isOpen ? answer.continue() : void held.push(answer)));
  return {
    /** When a request of the route has been given up: the page shows that before the browser tells it. */
    aborted: () => page.waitForEvent("requestfailed", (request) => pattern.test(request.url()) && /ABORTED/.test(request.failure()?.errorText ?? "")),
    async release() {
      isOpen = true;
      // One that the page has given up has nobody to answer.
      await Promise.all(held.splice(0).map((answer) => answer.continue().catch(() => undefined)));
    },
  };
}

async function picture(view, name) {
  if (folder) await view.page.screenshot({ path: join(folder, `${name}.png`) });
}

async function noBarriers(view, what) {
  const { found } = await barriersOf(view.page);
  expect(`${what}: ${found.join("; ")}`, found.length === 0);
}

const walks = Object.fromEntries(
  Object.entries(SCREENS).map(([what, [parameters, route, skeleton, shown]]) => [
    `${what} is waited for, cancelled, and asked for again`,
    async (view) => {
      const { page } = view;
      const held = await hold(page, route);
      await view.open({ ...RANGE, ...parameters });
      await page.getByTestId(skeleton).first().waitFor();
      const line = page.getByTestId("wait-line");
      await line.waitFor();
      expect(`the line says for what: ${await line.innerText()}`, /Waiting for the|Waiting for callers/.test(await line.innerText()));
      await view.until(() => /[1-9]\d* s/.test(document.querySelector("[data-testid=wait-line]")?.textContent ?? ""));
      await noBarriers(view, "while waiting");
      await picture(view, `waiting-${route}-${parameters.view ?? parameters.screen}`);
      await Promise.all([held.aborted(), page.getByTestId("wait-cancel").click()]);
      await line.waitFor({ state: "hidden" });
      const again = page.getByRole("button", { name: "Ask again" }).first();
      await again.waitFor();
      await noBarriers(view, "when cancelled");
      await picture(view, `cancelled-${route}-${parameters.view ?? parameters.screen}`);
      await held.release();
      await again.click();
      await page.locator(shown).first().waitFor();
      expect("nothing is waited for", !(await line.isVisible()));
    },
  ]),
);

walks["a cancelled question has cheaper ones"] = async (view) => {
  const { page } = view;
  const held = await hold(page, "flamegraph");
  await view.open({ ...RANGE });
  await page.getByTestId("services-list").locator(".service-row").nth(1).waitFor();
  await page.getByTestId("wait-cancel").click();
  const shorter = page.getByRole("button", { name: "Its last hour" });
  await shorter.waitFor();
  await held.release();
  await page.getByRole("button", { name: /^Only / }).click();
  await view.until(() => /service_name/.test(new URLSearchParams(location.search).get("query") ?? ""));
  await page.locator("[data-testid=flamegraph]:not([hidden])").waitFor();
};

walks["a slow refresh says so late, and keeps the picture when it is cancelled"] = async (view) => {
  const { page } = view;
  await view.flame({ ...RANGE, query: SERVICE });
  const held = await hold(page, "flamegraph");
  const line = page.getByTestId("wait-line");
  await Promise.all([page.waitForRequest(/flamegraph/), page.keyboard.press("r")]);
  expect("not at once", !(await line.isVisible()));
  await line.waitFor();
  await page.getByTestId("wait-cancel").click();
  await view.until(() => (window.__candela?.flamegraph()?.visible.length ?? 0) > 1);
  expect("no error over it", (await page.getByTestId("profile-state").count()) === 0);
  await held.release();
};

walks["a server that is away is said with its command, and found again"] = async (view) => {
  const { page } = view;
  await page.route(/\/api\/v1\//, (answer) => answer.abort("connectionrefused"));
  await view.open({ ...RANGE, query: SERVICE });
  const state = page.getByTestId("profile-state");
  await state.filter({ hasText: "No answer from the server" }).waitFor();
  expect("the command", (await state.innerText()).includes("candela up"));
  await noBarriers(view, "when away");
  await picture(view, "away");
  await page.unroute(/\/api\/v1\//);
  await page.locator("[data-testid=flamegraph]:not([hidden])").waitFor();
};

walks["a budget that is spent offers what costs less"] = async (view) => {
  const { page } = view;
  await page.route(/\/api\/v1\/flamegraph/, (answer) =>
    answer.fulfill({
      status: 422,
      json: { code: "over_budget", message: "the query reads more than 2 GiB", hint: "narrow the range or the selector" },
    }),
  );
  await view.open({ ...RANGE });
  await page.getByTestId("profile-state").filter({ hasText: "The query reads more than 2 GiB." }).waitFor();
  await page.getByRole("button", { name: "Its last hour" }).waitFor();
  await picture(view, "over-budget");
};

walks["a part of an answer says which"] = async (view) => {
  const { page } = view;
  await page.route(/\/api\/v1\/top/, async (answer) => {
    const response = await answer.fetch();
    const body = await response.json();
    await answer.fulfill({ response, json: { ...body, partial: true, partial_reason: "a block of the data cannot be read and is left out: 01K" } });
  });
  await view.open({ ...RANGE, query: SERVICE });
  await page.locator(".banner").filter({ hasText: "A block of the data cannot be read" }).waitFor();
  await noBarriers(view, "when partial");
  await picture(view, "partial");
};

const seen = await walkComplaints(url, walks, { only: process.env.ONLY });
process.stdout.write(`${JSON.stringify(seen)}\n`);
