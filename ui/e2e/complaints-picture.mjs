// What readers of other profilers complain about, as far as it is the picture of one profile: `complaints.mjs` walks them.
import { expect, windowModule } from "./complaint.mjs";
import { below, foldedTrees, namesIn, nodeOf } from "./folded.mjs";

const { formatShare, formatValue } = await windowModule("model/units.ts");
const { escapeForSearch } = await windowModule("model/search.ts");
const CHECKOUT = '{service_name="checkout"}';
const SLOW_FUNCTION = "shop/checkout/pricing.(*Engine).applyDiscounts";
/** So few nodes that most of a service is folded. */
const FEW_NODES = 120;

/** The row of a function in the table. */
function rowOf(view, name) {
  return view.page.locator(`[data-testid=top-row][data-function=${JSON.stringify(name)}]`).first();
}

/** The share that a search is said to have of everything is that of the stacks which the server finds by it. */
async function expectSharesOf(view, selection, search, filter = search) {
  await view.flame({ ...selection, search });
  const [whole, found] = await Promise.all([{}, { focus: filter }].map((more) => view.ask("top", { ...selection, limit: "1", ...more })));
  await view.until(() => /\d/.test(document.querySelector("[data-testid=search-share] strong")?.textContent ?? ""));
  const said = await view.page.getByTestId("search-share").locator("strong").textContent();
  const wanted = formatShare(found.total, whole.total);
  expect(`${search} has ${said}, the server finds ${wanted}`, said === wanted && found.total > 0 && found.total < whole.total);
  return { whole: whole.total, found: found.total };
}

/** How much of the canvas above the picture is drawn on. */
function outlinedPixels(view) {
  return view.page.evaluate(() => {
    const canvas = document.querySelector(".flame-outlines");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let drawn = 0;
    for (let alpha = 3; alpha < data.length; alpha += 4) if (data[alpha] > 0) drawn++;
    return drawn;
  });
}

export const complaintsAboutPictures = ({ hour, day }) => ({
  "01 big profiles do not hang the page": async (view) => {
    const generator = await windowModule("../bench/generate.ts");
    const million = Buffer.from(generator.generateTree(1_000_000, 10_000, 1));
    await view.page.route("**/api/v1/flamegraph?*", (route) => route.fulfill({ body: million }));
    await view.flame({ query: CHECKOUT });
    expect("a million nodes", (await view.graph()).nodes === 1_000_000);
    const longest = await view.page.evaluate(() => Math.max(...window.__perf.draws.map((draw) => draw.milliseconds)));
    expect(`the slowest picture took ${longest} ms`, longest < 250);
  },

  "02 the tooltip comes with the pointer": async (view) => {
    await view.flame({ query: CHECKOUT });
    const { visible } = await view.graph();
    await view.pointAt(visible.find(({ y, w }) => y > 40 && w > 100));
    await view.page.getByRole("tooltip").waitFor();
    const slowest = await view.page.evaluate(() => Math.max(0, ...window.__perf.hits));
    expect(`finding the box took ${slowest} ms`, slowest < 16);
  },

  "03 the canvas is never larger than the screen": async (view) => {
    await view.flame({ query: "{}", ...day });
    const size = await view.page.evaluate(() => {
      const canvas = document.querySelector("[data-testid=flamegraph-canvas]");
      return [canvas.width / devicePixelRatio - innerWidth, canvas.height / devicePixelRatio - innerHeight];
    });
    expect(`the canvas is larger by ${size}`, Math.max(...size) <= 0);
  },

  "04 the table is exact, whatever the picture folds": async (view) => {
    const trees = await foldedTrees(view, FEW_NODES);
    await view.open({ query: "{}", view: "both", ...day });
    await view.page.getByTestId("top-row").first().waitFor();
    await view.page.getByRole("button", { name: /folded · show all$/ }).waitFor();
    const { functions, unit } = await view.ask("top", { query: "{}", ...day, limit: "0" });
    const drawn = namesIn(trees.at(-1));
    const folded = functions.filter(({ name }) => !drawn.has(name));
    expect(`the picture folds ${folded.length} of ${functions.length} functions`, folded.length > functions.length / 2);
    const table = view.page.getByTestId("top-table");
    const rows = Number(await table.getAttribute("aria-rowcount")) - 1;
    expect(`${rows} rows of ${functions.length} functions`, rows === functions.length);
    const exact = new Set(functions.map(({ name, self, total }) => [name, formatValue(self, unit), formatValue(total, unit)].join()));
    const listed = () =>
      view.page.getByTestId("top-row").evaluateAll((all) =>
        all.map((row) => [row.dataset.function, row.querySelector(".top-self").title, row.querySelector(".top-total").title].join()),
      );
    const shown = await listed();
    await table.evaluate((scroller) => scroller.scrollTo({ top: scroller.scrollHeight }));
    await view.until((last) => document.getElementById(last) !== null, `top-row-${rows - 1}`);
    shown.push(...(await listed()));
    const wrong = shown.filter((row) => !exact.has(row));
    expect(`rows that the server has otherwise: ${wrong.slice(0, 3)}`, wrong.length === 0 && shown.length > 20);
  },

  "05 focus asks for more than there was": async (view) => {
    const trees = await foldedTrees(view, FEW_NODES);
    await view.flame({ query: "{}", ...day });
    const before = trees.at(-1);
    const { visible } = await view.graph();
    const target = visible.findLast((box) => box.w > 60 && box.y > 60 && below(before, nodeOf(before, box)).folded > 0);
    await view.click(target, { button: "right" });
    await view.page.getByRole("menuitem", { name: /^Focus/ }).click();
    await view.until(() => performance.getEntriesByName("focus:drawn").length > 0);
    const after = trees.at(-1);
    const [less, more] = [before, after].map((tree) => below(tree, nodeOf(tree, target)));
    expect(`below ${target.name} ${less.nodes} nodes became ${more.nodes}`, more.nodes > less.nodes);
    expect(`${less.folded} folded became ${more.folded}`, more.folded < less.folded);
    expect("the picture is that answer", (await view.graph()).nodes === after.length);
    await view.box(target.name);
  },

  "06 a function that the picture folds is reached from the table": async (view) => {
    const trees = await foldedTrees(view, FEW_NODES);
    await view.open({ query: CHECKOUT, view: "table", ...hour });
    await view.page.getByTestId("top-row").first().waitFor();
    await view.until(() => (window.__candela?.flamegraph()?.nodes ?? 0) > 1);
    const { functions } = await view.ask("top", { query: CHECKOUT, ...hour, limit: "0" });
    const drawn = namesIn(trees.at(-1));
    const { name } = functions.find((row) => !drawn.has(row.name));
    // The row may be out of sight, too.
    await view.page.getByTestId("search-input").fill(escapeForSearch(name));
    await rowOf(view, name).dblclick();
    const box = await view.box(name);
    expect(`${name} is drawn`, box.w > 0);
  },

  "12 a search is a regular expression and says its share": async (view) => {
    const selection = { query: CHECKOUT, ...hour };
    const { found } = await expectSharesOf(view, selection, "pricing|discount", "fn:(?i)pricing|discount");
    const { functions } = await view.ask("top", { ...selection, limit: "0" });
    const sum = functions.filter(({ name }) => /pricing|discount/i.test(name)).reduce((all, { total }) => all + total, 0);
    expect(`a stack counts once: ${found} is less than ${sum}`, found < sum);
  },

  "13 filters keep both denominators": async (view) => {
    const selection = { query: CHECKOUT, ...hour };
    await view.flame({ ...selection, filters: "focus=fn:applyDiscounts" });
    const share = view.page.getByTestId("filters-share");
    await share.waitFor();
    const [whole, shown] = await Promise.all([{}, { focus: "fn:applyDiscounts" }].map((more) => view.ask("top", { ...selection, limit: "1", ...more })));
    const wanted = `shown: ${formatShare(shown.total, whole.total)} of all, ${formatValue(shown.total, shown.unit)} of ${formatValue(whole.total, whole.unit)}`;
    const said = await share.textContent();
    expect(`${said} is ${wanted}`, said === wanted);
  },

  "14 what a search finds is unfolded in the tree": async (view) => {
    await view.open({ query: CHECKOUT, view: "tree", search: "applyDiscounts" });
    await view.page.getByTestId("tree-row").filter({ hasText: "applyDiscounts" }).first().waitFor();
  },

  "15 only my code is one click": async (view) => {
    await view.flame({ query: CHECKOUT });
    await view.page.getByTestId("filter-presets").click();
    await view.page.getByRole("button", { name: /^My code only/ }).click();
    await view.until(() => (new URLSearchParams(location.search).get("filters") ?? "").includes("hide=kind:kernel"));
    await view.until(() => !window.__candela.flamegraph().visible.some(({ name }) => name.startsWith("runtime.")));
  },

  "16 every field of a frame can be searched and filtered": async (view) => {
    const selection = { query: CHECKOUT, ...hour };
    for (const search of ["file:pricing", "bin:^.kernel", "pkg:^encoding/json$", "kind:^kernel$", "fn:applyDiscounts"]) {
      await expectSharesOf(view, selection, search);
    }
    // First lines of functions are no part of a tree: they are asked for.
    const pattern = String.raw`line:pricing/discounts\.go:\d+$`;
    await view.flame(selection);
    await view.page.getByTestId("filter-kind").selectOption("focus");
    await view.page.getByTestId("filter-input").fill(pattern);
    await view.page.keyboard.press("Enter");
    const { total } = await view.ask("top", { ...selection, limit: "1", focus: pattern });
    await view.until((wanted) => window.__candela.flamegraph().total === wanted, total);
  },

  "18 all threads are there at once": async (view) => {
    const gateway = '{service_name="gateway"}';
    await view.open({ query: gateway, view: "chart", from: "now-10m", to: "now" });
    await view.until(() => (window.__candela?.chart().length ?? 0) > 10);
    const { lanes } = await view.ask("chart", { query: gateway, type: "cpu", from: "now-10m", to: "now" });
    const names = await view.page.getByTestId("lane").evaluateAll((rows) => rows.map((row) => row.dataset.lane));
    expect(`a merged lane and ${lanes.length} more: ${names.length}`, lanes.length > 2 && names.length === lanes.length + 1);
    const drawn = await view.page.evaluate(() => new Set(window.__candela.chart().map(({ lane }) => lane)).size);
    expect(`${drawn} lanes are seen at once`, drawn > 2);
  },

  "19 nothing needs WebGL": async (view) => {
    await view.flame({ query: CHECKOUT });
    const isFlat = await view.page.evaluate(
      () => document.querySelector("[data-testid=flamegraph-canvas]").getContext("2d") !== null,
    );
    expect("the picture is a flat one", isFlat);
  },

  "20 a click zooms, and what is hovered is shown in the other pane": async (view) => {
    await view.open({ query: CHECKOUT, view: "both", ...hour });
    const row = view.page.getByTestId("top-row").first();
    await row.waitFor();
    const name = await row.getAttribute("data-function");
    const box = await view.box(name);
    await view.pointAt(box);
    await view.page.locator(".top-row.is-linked").first().waitFor();
    const linked = await view.page.locator(".top-row.is-linked").evaluateAll((rows) => rows.map((one) => one.dataset.function));
    expect(`linked is ${linked}, hovered ${name}`, linked.every((one) => one === name));
    await view.page.mouse.move(5, 5);
    await view.until(() => document.querySelector(".top-row.is-linked") === null);
    const before = await outlinedPixels(view);
    await row.hover();
    const during = await outlinedPixels(view);
    expect(`boxes of the hovered row are outlined: ${before} pixels, then ${during}`, during > before);
    await view.click(box);
    await view.until(() => new URLSearchParams(location.search).has("zoom"));
    const zoomed = view.page.getByRole("navigation", { name: "Zoom" }).locator("[aria-current=location]");
    expect("the box is zoomed to", (await zoomed.getAttribute("title")) === name);
  },

  "20 anything is a few letters away": async (view) => {
    await view.flame({ query: "{}" });
    await view.page.keyboard.press("Control+k");
    await view.page.getByTestId("palette-input").fill("serv checkout");
    await view.page.getByRole("option", { name: "service checkout", selected: true }).waitFor();
    await view.page.keyboard.press("Enter");
    await view.until(() => location.search.includes("checkout"));
  },

  "21 details need no waiting": async (view) => {
    await view.flame({ query: CHECKOUT });
    const { visible } = await view.graph();
    const box = visible.find(({ w, y }) => w > 100 && y > 60);
    await view.pointAt(box);
    await view.until((name) => document.querySelector("[data-testid=flamegraph-status] strong")?.textContent === name, box.name);
  },

  "22 the flame graph is there first": async (view) => {
    await view.page.goto(view.url);
    await view.until(() => performance.getEntriesByName("fg:first").length > 0);
  },

  "22 the right profile is found by what is wrong": async (view) => {
    await view.flame({ query: CHECKOUT });
    await view.page.getByTestId("open-profile-chooser").click();
    await view.page.getByRole("button", { name: "Off-CPU time" }).first().click();
    await view.until(() => (new URLSearchParams(location.search).get("type") ?? "").startsWith("off_cpu:"));
  },

  "23 it is clear how to go back": async (view) => {
    await view.flame({ query: CHECKOUT, ...hour });
    const { visible } = await view.graph();
    const deepest = visible.filter(({ w }) => w > 60).toSorted((left, right) => right.y - left.y)[0];
    await view.click(deepest);
    const crumbs = view.page.getByRole("navigation", { name: "Zoom" });
    await crumbs.waitFor();
    const steps = await crumbs.locator("button[title]").evaluateAll((all) => all.map(({ title }) => title));
    expect(`the way is ${steps}`, steps.length > 3 && steps.at(-1) === deepest.name);
    const zooms = [view.parameter("zoom")];
    const stepsTo = async (act, wanted) => {
      await act();
      await view.until(
        ([was, name]) =>
          new URLSearchParams(location.search).get("zoom") !== was &&
          document.querySelector("nav[aria-label=Zoom] [aria-current=location]")?.title === name,
        [zooms.at(-1), wanted],
      );
      zooms.push(view.parameter("zoom"));
    };
    await stepsTo(() => view.page.keyboard.press("Backspace"), steps.at(-2));
    await stepsTo(() => view.page.keyboard.press("Escape"), steps.at(-3));
    // Those above stay in sight, and lead there by a click.
    const above = (await view.graph()).visible.map(({ name }) => name);
    expect(`${steps.at(-4)} is above`, above.includes(steps.at(-4)));
    await stepsTo(() => view.page.goBack(), steps.at(-2));
    await stepsTo(() => view.page.goBack(), steps.at(-1));
    expect("back is where it was before", zooms.at(-1) === zooms[0] && zooms.at(-2) === zooms[1]);
    await stepsTo(() => view.page.goForward(), steps.at(-2));
    await view.page.goBack();
    await view.page.goBack();
    await view.until(() => !new URLSearchParams(location.search).has("zoom"));
    await crumbs.waitFor({ state: "detached" });
  },

  "24 names can be copied": async (view) => {
    await view.flame({ query: CHECKOUT });
    const { visible } = await view.graph();
    const box = visible.find(({ w, y }) => w > 100 && y > 60);
    await view.click(box, { button: "right" });
    await view.page.keyboard.press("c");
    await view.hasCopied(box.name);
    await view.open({ query: CHECKOUT, view: "tree" });
    const row = view.page.getByTestId("tree-row").nth(2);
    await row.click();
    await view.page.getByTestId("tree").focus();
    await view.page.keyboard.press("c");
    await view.hasCopied(await row.getAttribute("data-function"));
    await view.open({ query: CHECKOUT, view: "table" });
    const first = view.page.getByTestId("top-row").first();
    await first.waitFor();
    await view.page.getByTestId("top-table").focus();
    await view.page.keyboard.press("ArrowDown");
    await view.page.keyboard.press("c");
    await view.hasCopied(await first.getAttribute("data-function"));
    // Elsewhere this key compares.
    expect("the screen stays", view.parameter("screen") === null);
  },

  "25 callers and callees of a function": async (view) => {
    await view.open({ query: CHECKOUT, view: "sandwich", fn: SLOW_FUNCTION });
    await view.page.getByTestId("callers").waitFor();
    await view.page.getByTestId("callees").waitFor();
  },

  "26 the calling line is found in the source": async (view) => {
    await view.flame({ query: CHECKOUT });
    // Somebody who calls something: what the line takes is spent elsewhere.
    const { visible } = await view.graph();
    const caller = visible.find(({ w, y, name }) => w > 100 && w < 700 && y > 60 && name.includes("checkout"));
    await view.click(caller, { button: "right" });
    await view.page.keyboard.press("o");
    await view.page.getByTestId("source").waitFor();
    const line = view.page.locator('[data-testid="code-row"][aria-selected="true"][data-line]');
    await line.waitFor();
    const total = await line.getByTestId("line-total").getAttribute("title");
    expect(`the line says what it is of the view and of all: ${total}`, /% of view\n.*% of all/.test(total));
    const path = await view.page.locator(".source-path").count();
    expect("of the path of the box", path === 1 && view.parameter("zoom") !== null);
  },

  "27 the picture can be read without seeing it": async (view) => {
    await view.flame({ query: CHECKOUT });
    const grid = view.page.getByTestId("flamegraph");
    await grid.focus();
    await view.page.keyboard.press("ArrowDown");
    const described = await grid.getAttribute("aria-activedescendant");
    const row = view.page.locator(`#${described}`);
    expect("the row says its cost", /self .*total /.test(await row.innerText()));
  },
});
