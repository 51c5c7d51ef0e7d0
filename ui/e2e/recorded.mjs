// Walks the screens beside the profile on what a server has recorded of its own host, and what it says of the quality. Called by
// crates/cli/tests/host/window.rs:
//   node e2e/recorded.mjs URL SERVICE FUNCTION FILE TOTAL
// FUNCTION takes most of SERVICE, and FILE is a recording of TOTAL of the same program. Figures are compared with what the server says. Prints
// one JSON line: what was walked, and `problems`.
import { basename } from "node:path";
import { setTimeout } from "node:timers/promises";
import { ask, expect, walkComplaints, windowModule } from "./complaint.mjs";
import { carry } from "./drop.mjs";

const [url, service, wanted, file, totalOfFile] = process.argv.slice(2);
const { formatBytes, formatCount, formatRate, formatShare, formatValue } = await windowModule("model/units.ts");
const query = `{service_name="${service}"}`;
const PATIENCE_MS = 60_000;
const POLL_MS = 250;

// What has come until now. The agent goes on: between times that stand, what is asked twice has one answer.
const { range, halves } = await recordedTimes();

// Something is lost for a reason that is known, whatever the agent loses.
const refused = await fetch(new URL("api/v1/ingest?service=nobody", url), { method: "POST", body: "no profile" });
if (refused.ok) throw new Error("the server takes what is no profile");

/** All that is stored, and its halves, as soon as the service is in both: an agent sends its profiles seconds apart. */
async function recordedTimes() {
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (;;) {
    const { first_ms: first, end_ms: end } = await ask(url, "services", { from: "now-15m" });
    const middle = String(Math.round((first + end) / 2));
    const all = { from: String(first), to: String(end) };
    const both = { from: middle, to: all.to, base_from: all.from, base_to: middle };
    const { before, after } = await ask(url, "diff", { query, ...both, limit: "0" });
    if (before.total > 0 && after.total > 0) return { range: all, halves: both };
    if (performance.now() > giveUpAt) throw new Error(`${service} is not in both halves of what is stored`);
    await setTimeout(POLL_MS);
  }
}

/** What the page was told of the server's state, the latest; `first` when it was told for the first time. */
function followStatus(page) {
  const told = {};
  told.first = new Promise((resolve) => {
    page.on("response", async (response) => {
      if (!new URL(response.url()).pathname.endsWith("/api/v1/status") || !response.ok()) return;
      told.status = await response.json().catch(() => told.status);
      if (told.status) resolve();
    });
  });
  return told;
}

const cpuOf = ({ cost }) => `${(cost.cpu_ppm / 10_000).toFixed(2)} % of a core`;

/** Stacks of programs, and how many of them reach the first function. */
function stacksOf({ quality }) {
  return { all: quality.samples - (quality.kernel_only ?? 0), complete: quality.complete };
}

function wordsOf(drops) {
  return drops.map(({ reason }) => reason.replaceAll("_", " "));
}

const walks = {
  "services have the cost that the server sums up": async (view) => {
    const { services, unit } = await view.ask("services", range);
    await view.open({ screen: "services", ...range });
    const row = view.page.getByTestId("services-row").filter({ hasText: service });
    await row.waitFor();
    const { total } = services.find((one) => one.service === service);
    const [said, value] = [await row.locator("td.is-cost").getAttribute("title"), formatValue(total, unit)];
    expect(`the cell is about ${said}, the server says ${value}`, said.includes(value));
    // Who ran and was never met by a sample of this kind has nothing to be ranked by.
    const names = services.filter((one) => one.total > 0).map((one) => one.service);
    const rows = await view.page.getByTestId("services-row").getByRole("rowheader").evaluateAll((cells) => cells.map((cell) => cell.ariaLabel));
    expect(`the rows are ${rows}, the services with a cost ${names}`, rows.toSorted().join() === names.toSorted().join());
  },

  "labels have the share that the server sums up": async (view) => {
    const { services } = await view.ask("services", range);
    const all = services.reduce((sum, { total }) => sum + total, 0);
    await view.open({ screen: "labels", ...range });
    const card = view.page.locator(`[data-testid=label-card][data-value="${service}"]`);
    await card.waitFor();
    const share = formatShare(services.find((one) => one.service === service).total, all);
    await card.locator(".label-card-figures").filter({ hasText: share }).waitFor();
    await card.locator("canvas[data-drawn=true]").waitFor();
    await card.getByRole("button").first().click();
    // Its boxes may be below what the window has room for: the program calls itself sixty times.
    await view.page.locator(`[data-testid=top-row][data-function="${wanted}"]`).first().waitFor();
    expect(`the selector is ${view.parameter("query")}`, view.parameter("query") === query);
  },

  "both sides of a comparison have what the server has of them": async (view) => {
    const answer = await view.ask("diff", { query, ...halves, limit: "0" });
    await view.open({ screen: "compare", query, ...halves });
    await view.page.getByTestId("change-legend").waitFor();
    const sides = ["before", "after"].map((side) => {
      const { total, profiled_ms: milliseconds } = answer[side];
      return formatRate((1e3 * total) / milliseconds, answer.unit, true);
    });
    const said = await view.page.locator(".compare-total strong").allTextContents();
    expect(`the sides are ${said}, the server says ${sides}`, said.join() === sides.join());
    const row = view.page.locator(`[data-testid=top-row][data-function="${wanted}"]`).first();
    const values = answer.functions.find(({ name }) => name === wanted);
    const now = await row.locator(".top-after").textContent();
    expect(`after is ${now}`, now === formatValue(values.after.self, answer.unit));
  },

  "a recording is looked at where it is": async (view) => {
    await view.open({ screen: "files" });
    await view.page.getByTestId("files-screen").waitFor();
    const land = await carry(view.page, [file]);
    await land();
    await view.until((total) => window.__candela?.flamegraph()?.total === total, Number(totalOfFile));
    await view.page.getByTestId("file-head").filter({ hasText: basename(file) }).waitFor();
    await view.page.locator(`[data-testid=top-row][data-function="${wanted}"]`).first().waitFor();
  },

  "the status is what the server says of itself": async (view) => {
    const told = followStatus(view.page);
    await view.open({ screen: "status" });
    await view.page.getByTestId("status-storage").waitFor();
    await told.first;
    const lacks = async () => {
      const { status } = told;
      const [agent] = status.agents;
      const { all, complete } = stacksOf(status);
      const figures = {
        "status-agents": [agent.host, status.version, cpuOf(agent), formatBytes(agent.cost.resident_bytes)],
        "status-quality": [formatCount(complete), formatShare(complete, all)],
        "status-drops": wordsOf(status.drops),
        "status-storage": [`${formatCount(status.storage.head_samples)} samples`],
      };
      const texts = await view.page.evaluate((ids) => ids.map((id) => document.querySelector(`[data-testid=${id}]`).textContent), Object.keys(figures));
      return Object.values(figures).flatMap((wantedTexts, place) => wantedTexts.filter((text) => !texts[place].includes(text)));
    };
    // It is told anew every few seconds, and may be while it is read.
    let missing = await lacks();
    for (let look = 0; look < 3 && missing.length > 0; look++) {
      await view.page.waitForResponse(/api\/v1\/status/);
      await view.page.evaluate(() => new Promise(requestAnimationFrame));
      missing = await lacks();
    }
    expect(`the screen lacks ${missing}`, missing.length === 0);
  },

  "each entry of the quality bar opens its cause and what helps": async (view) => {
    const told = followStatus(view.page);
    await view.flame({ query, ...range });
    const bar = view.page.getByTestId("quality-bar");
    await bar.getByTestId("quality-truncated").waitFor();
    await told.first;
    const { status } = told;
    const { all, complete } = stacksOf(status);
    const { samples } = await view.ask("top", { query, ...range, limit: "1" });
    const causes = Object.entries(status.quality).filter(([name, count]) => count > 0 && !["samples", "complete", "kernel_only"].includes(name));
    const [agent] = status.agents;
    const lost = status.drops.filter(({ reason }) => status.drop_reasons[reason].is_loss);
    /** What each entry says, and what its panel does. */
    const ENTRIES = {
      "quality-samples": [`${formatCount(samples)} samples`, ["95 %", `${formatCount(samples)} samples`]],
      "quality-unsymbolized": [/all symbolized|% unsymbolized/, [/has a name|candela symbols upload/]],
      "quality-truncated": [
        `${formatShare(all - complete, all)} truncated`,
        [...causes.map(([name]) => name.replaceAll("_", " ")), "candela doctor -p PID"],
      ],
      "quality-dropped": ["dropped", wordsOf(lost)],
      "quality-overhead": [`agent ${cpuOf(agent)}`, [`${agent.host} · ${cpuOf(agent)}`, "agent.cpu_budget", "candela doctor --agent"]],
      quality: [`${formatShare(complete, all)} complete stacks`, [formatCount(status.quality.samples), agent.host, ...wordsOf(status.drops)]],
    };
    const inBar = await bar.locator("button[data-testid]").evaluateAll((buttons) => buttons.map((button) => button.dataset.testid));
    expect(`the bar has ${inBar}`, ["quality-samples", "quality-unsymbolized", "quality-truncated", "quality-overhead"].every((id) => inBar.includes(id)));
    for (const testId of [...inBar, "quality"]) {
      const [label, texts] = ENTRIES[testId];
      await view.page.getByTestId(testId).filter({ hasText: label }).click();
      const panel = view.page.getByRole("dialog");
      for (const text of texts) await panel.filter({ hasText: text }).waitFor();
      await view.page.keyboard.press("Escape");
      await panel.waitFor({ state: "detached" });
    }
    expect("something was lost, and told", lost.some(({ reason }) => reason.startsWith("refused: ")));
  },
};

process.stdout.write(`${JSON.stringify(await walkComplaints(url, walks, { only: process.env.ONLY }))}\n`);
