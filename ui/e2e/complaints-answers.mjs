// What readers of other profilers complain about, as far as it is ranges, comparisons, files, links and trust: `complaints.mjs` walks
// them.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { expect, windowModule } from "./complaint.mjs";

const { formatShare } = await windowModule("model/units.ts");
const CHECKOUT = '{service_name="checkout"}';
const SLOW_FUNCTION = "shop/checkout/pricing.(*Engine).applyDiscounts";
const SCREENS = ["services", "profile", "compare", "labels", "files", "status"];
/** Keys of the panes that are loaded when they are looked at: tree, sandwich, chart, source. */
const LAZY_PANES = ["4", "5", "6", "7"];
/** As functions without a name are called. */
const ADDRESS = /(^|\+)0x[0-9a-f]+$/i;

function foldedFile(name, burn) {
  return { name, mimeType: "text/plain", buffer: Buffer.from(`main;burn ${burn}\nmain;rest 100\n`) };
}

function sumOfFolded(path) {
  const lines = readFileSync(path, "utf8").trim().split("\n");
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}

/** The route of a request about a range, and its ends. */
function askedBy(request) {
  const { pathname, searchParams } = new URL(request.url());
  if (!searchParams.has("from")) return undefined;
  return { route: pathname.slice(pathname.lastIndexOf("/") + 1), from: searchParams.get("from"), to: searchParams.get("to") };
}

function isAbout(asked, { from, to }) {
  return asked.from === from && asked.to === to;
}

export const complaintsAboutAnswers = ({ hour, day }) => ({
  "07 two times are compared in one step": async (view) => {
    await view.open({ query: CHECKOUT });
    await view.page.getByTestId("screen-compare").click();
    await view.page.getByTestId("change-legend").waitFor();
  },

  "07 local files are compared, too": async (view) => {
    await view.open({ screen: "files" });
    await view.page.getByTestId("file-input").setInputFiles([foldedFile("before.folded", 100), foldedFile("after.folded", 300)]);
    for (const name of ["before.folded", "after.folded"]) await view.page.getByRole("checkbox", { name: `Compare ${name}` }).check();
    await view.page.getByTestId("compare-files").click();
    await view.page.getByTestId("change-legend").waitFor();
    await view.page.locator("[data-testid=top-row][data-function=burn]").waitFor();
    expect("both totals", (await view.page.locator(".compare-total strong").allTextContents()).join() === "200,400");
  },

  "08 a comparison is one picture": async (view) => {
    await view.open({ screen: "compare", query: CHECKOUT });
    await view.page.getByTestId("change-legend").waitFor();
    expect("one flame graph", (await view.page.getByTestId("flamegraph").count()) === 1);
  },

  "09 what is normalised is said, and by how much": async (view) => {
    const before = { base_from: String(Number(hour.from) - 3600e3), base_to: hour.from };
    await view.open({ screen: "compare", query: CHECKOUT, ...hour });
    const legend = view.page.getByTestId("change-legend");
    const factors = new Set();
    for (const [name, normalization, words] of [
      ["Absolute", "absolute", "absolute: what each costs in the same time"],
      ["Shares", "share", "share: what part of the whole each is"],
      ["Robust", "robust", "robust: what each costs, had most functions not changed"],
    ]) {
      const { statistics } = await view.ask("diff", { query: CHECKOUT, ...hour, ...before, normalization, limit: "1", max_nodes: "1" });
      const factor = statistics.size_factor.toPrecision(3);
      await view.page.getByRole("button", { name, exact: true }).click();
      await legend.filter({ hasText: `${words} (before × ${factor})` }).waitFor();
      factors.add(factor);
    }
    expect(`three ways, factors ${[...factors]}`, factors.size > 1);
  },

  "10 new and gone functions are listed": async (view) => {
    await view.open({ screen: "compare", query: '{service_name="catalog"}', from: "now-17h", to: "now-16h", base_from: "now-23h", base_to: "now-22h" });
    await view.page.getByRole("button", { name: "New", exact: true }).click();
    await view.page.getByTestId("top-row").filter({ hasText: "RelevanceScorer" }).first().waitFor();
    await view.page.getByRole("button", { name: "Gone", exact: true }).click();
    await view.page.getByTestId("top-row").filter({ hasText: "ProductRanker" }).first().waitFor();
  },

  "11 each side of a comparison opens alone": async (view) => {
    await view.open({ screen: "compare", query: CHECKOUT });
    await view.page.getByTestId("open-before").click();
    await view.until(() => !new URLSearchParams(location.search).has("screen"));
    expect("its own times", /^\d+$/.test(view.parameter("from") ?? ""));
  },

  "17 one range is asked for by every view": async (view) => {
    await view.flame({ query: CHECKOUT, fn: SLOW_FUNCTION, ...hour });
    await view.page.waitForLoadState("networkidle");
    const asked = [];
    view.page.on("request", (request) => {
      const one = askedBy(request);
      if (one) asked.push(one);
    });
    const chosen = await view.drag(0.4, 0.6);
    const earlier = { from: String(2 * Number(chosen.from) - Number(chosen.to)), to: chosen.from };
    const asks = async (what, routes, act, allowed = []) => {
      await act();
      for (const route of routes) {
        const isIt = (one) => one?.route === route && isAbout(one, chosen);
        if (!asked.some(isIt)) await view.page.waitForRequest((request) => isIt(askedBy(request)));
      }
      await view.page.waitForLoadState("networkidle");
      const others = asked.filter((one) => ![chosen, ...allowed].some((range) => isAbout(one, range)));
      expect(`${what} asks about ${JSON.stringify(others.slice(0, 2))}`, others.length === 0);
      asked.length = 0;
    };
    await asks("the profile", ["flamegraph", "top", "series", "services", "heatmap"], () => undefined);
    await asks("the sandwich", ["callers"], () => view.page.keyboard.press("5"));
    await asks("the chart", ["chart"], () => view.page.keyboard.press("6"));
    await asks("the source", ["source"], () => view.page.keyboard.press("7"));
    await asks("the comparison", ["diff"], () => view.page.getByTestId("screen-compare").click());
    // The change of each value is that against the time before.
    await asks("the labels", ["series"], () => view.page.getByTestId("screen-labels").click(), [earlier]);
    expect("the range is kept", isAbout({ from: view.parameter("from"), to: view.parameter("to") }, chosen));
  },

  "28 no other host is asked, and an exported page asks nobody": async (view) => {
    const { origin } = new URL(view.url);
    await view.context.route(
      (address) => /^(http|ws)s?:$/.test(address.protocol) && address.origin !== origin,
      (route) => route.abort("internetdisconnected"),
    );
    for (const screen of SCREENS) {
      await view.open({ screen, query: CHECKOUT, ...hour });
      await view.page.waitForLoadState("networkidle");
    }
    await view.flame({ query: CHECKOUT, fn: SLOW_FUNCTION, ...hour });
    const { total } = await view.graph();
    for (const key of LAZY_PANES) {
      await view.page.keyboard.press(key);
      await view.page.waitForLoadState("networkidle");
    }
    await view.page.keyboard.press("2");
    const { path } = await view.exported("HTML page");
    await view.context.setOffline(true);
    const page = await view.context.newPage();
    const asked = [];
    page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || asked.push(request.url()));
    await page.goto(pathToFileURL(path).href);
    await page.waitForFunction((wanted) => window.__candela?.flamegraph()?.total === wanted, total);
    await page.getByTestId("search-input").fill("applyDiscounts");
    await page.waitForFunction(() => /[1-9]/.test(document.querySelector("[data-testid=search-share] strong")?.textContent ?? ""));
    await page.getByText("go to heaviest").click();
    await page.getByRole("navigation", { name: "Zoom" }).waitFor();
    expect(`the page asks ${asked}`, asked.length === 0);
  },

  "29 the data say how good they are, and what helps": async (view) => {
    const selection = { query: '{service_name="imaging"}', ...day };
    await view.flame(selection);
    const { functions, total } = await view.ask("top", { ...selection, limit: "0" });
    const nameless = functions.filter(({ name, self }) => self > 0 && ADDRESS.test(name));
    const share = formatShare(nameless.reduce((sum, { self }) => sum + self, 0), total);
    const entry = view.page.getByTestId("quality-unsymbolized");
    await entry.filter({ hasText: `${share} unsymbolized` }).waitFor();
    await entry.click();
    const panel = view.page.getByRole("dialog", { name: "Frames without a name" });
    const said = await panel.textContent();
    const [worst] = nameless;
    expect(`the panel names ${worst.mapping}: ${said}`, said.includes(worst.mapping) && said.includes("candela symbols upload"));
    await panel.getByRole("button", { name: "Copy candela symbols list" }).click();
    await view.hasCopied("candela symbols list");
    await view.page.keyboard.press("Escape");
    await panel.waitFor({ state: "detached" });
    await view.page.getByTestId("quality-samples").click();
    const { samples } = await view.ask("top", { ...selection, limit: "1" });
    const sure = await view.page.getByRole("dialog", { name: "How sure the shares are" }).textContent();
    const halfWidth = (1.96 * Math.sqrt((0.1 * 0.9) / samples) * 100).toFixed(2);
    expect(`${sure} says ± ${halfWidth} %`, sure.includes(`10 ± ${Number(halfWidth) >= 0.1 ? Number(halfWidth).toFixed(1) : halfWidth} %`));
  },

  "30 links keep their time, UTC is a key, labels have a grid": async (view) => {
    await view.flame({ query: CHECKOUT });
    await view.page.locator("body").click({ position: { x: 5, y: 5 } });
    await view.page.keyboard.press("y");
    const link = new URL(await view.page.evaluate(() => navigator.clipboard.readText()));
    expect(`fixed times in ${link.search}`, /^\d+$/.test(link.searchParams.get("from") ?? ""));
    await view.page.keyboard.press("u");
    await view.until(() => new URLSearchParams(location.search).get("utc") === "1");
    await view.page.goto(link.href);
    await view.page.keyboard.press("u");
    const begin = new Date(Number(link.searchParams.get("from"))).toISOString().slice(11, 16);
    await view.page.getByTestId("range-label").filter({ hasText: new RegExp(`${begin}.*UTC`) }).waitFor();
    await view.page.getByTestId("screen-labels").click();
    await view.page.getByTestId("label-card").first().waitFor();
  },

  "30 an export is of the range that was chosen": async (view) => {
    await view.flame({ query: CHECKOUT, ...hour });
    const whole = (await view.graph()).total;
    const chosen = await view.drag(0.3, 0.5);
    const { total } = await view.ask("top", { query: CHECKOUT, ...chosen, limit: "1" });
    await view.until((wanted) => window.__candela.flamegraph().total === wanted, total);
    const { path } = await view.exported("Folded stacks");
    const sum = sumOfFolded(path);
    expect(`${sum} is ${total}, and a part of ${whole}`, sum === total && total > 0 && total < whole);
  },
});
