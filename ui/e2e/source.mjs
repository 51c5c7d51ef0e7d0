// Walks the source of a function whose lines have known shares: 50, 30 and 20 %. Called by crates/cli/tests/host/source.rs:
//   node e2e/source.mjs URL FUNCTION FOLDER [ONLY]
// FUNCTION is called by `morning`, whose hottest line is that of all, and by `evening`, which has another. Leaves screenshots of both
// themes in FOLDER. Prints one JSON line: the shares of the lines, the numbers of the hottest, and `problems`.
import { join } from "node:path";
import { barriersOf } from "./barriers.mjs";
import { expect, walkComplaints } from "./complaint.mjs";

const [url, name, folder, only] = process.argv.slice(2);
const DAY = { query: '{service_name="lines"}', from: "now-1d", to: "now" };
const seen = {};

/** Share of the view, text and row of each line that has a value. */
async function lines(page) {
  await page.locator('[data-kind="line"] [data-testid="line-total"]').first().waitFor();
  return page.locator('[data-testid="code-row"][data-kind="line"]').evaluateAll((rows) =>
    rows
      .filter((row) => row.querySelector('[data-testid="line-total"]'))
      .map((row) => ({
        line: Number(row.dataset.line),
        share: Number.parseFloat(row.querySelector('[data-testid="line-total"] .cost-share').textContent),
        text: row.querySelector(".code-text").textContent,
        isChosen: row.getAttribute("aria-selected") === "true",
      })),
  );
}

/** The text of the chosen line, as soon as there is one. */
async function chosen(page) {
  const row = page.locator('[data-testid="code-row"][aria-selected="true"] .code-text');
  await row.first().waitFor();
  return row.first().textContent();
}

async function expectNoBarriers(page) {
  const { found } = await barriersOf(page);
  expect(`barriers: ${found}`, found.length === 0);
}

const walks = {
  "the lines have the shares that they were given": async (view) => {
    await view.open({ ...DAY, view: "source", fn: name });
    seen.lines = await lines(view.page);
    expect("it opens at the hottest line", (await chosen(view.page)).includes("the hottest line of all"));
    const cost = await view.text("source-cost");
    expect(`the heading says self and total: ${cost}`, /self .* total /.test(cost));
    seen.found = await view.text("source-found");
    await expectNoBarriers(view.page);
    await view.page.setViewportSize({ width: 1280, height: 800 });
    await view.page.screenshot({ path: join(folder, "source-1280-light.png") });
  },

  "26 the calling line is found in the source": async (view) => {
    await view.flame({ ...DAY });
    // The same function below its other caller: the box in the picture says which call path it is.
    const caller = await view.box("evening");
    await view.click(caller);
    await view.until(() => new URLSearchParams(location.search).has("zoom"));
    const box = await view.box(name);
    await view.click(box, { button: "right" });
    await view.page.getByRole("menuitem", { name: /^Source/ }).click();
    await view.until(() => new URLSearchParams(location.search).get("view") === "source");
    // The line of all paths may stand there until the answer for this one has come.
    await view.until(() => document.querySelector('[data-testid="code-row"][aria-selected="true"]')?.textContent.includes("in the evening"));
    seen.evening = await lines(view.page);
    const cost = await view.text("source-cost");
    expect(`both denominators: ${cost}`, cost.includes("of view") && cost.includes("of all"));
    await view.page.getByRole("button", { name: "all callers" }).click();
    await view.until(() => document.querySelector('[data-testid="code-row"][aria-selected="true"]')?.textContent.includes("of all"));
    // The line of the caller that calls it, too.
    await view.open({ ...DAY, view: "source", fn: "evening" });
    expect("the calling line", (await chosen(view.page)).includes("spend(0"));
  },

  "the keyboard walks hot lines, the search and the copy": async (view) => {
    await view.flame({ ...DAY });
    const box = await view.box(name);
    await view.pointAt(box);
    await view.page.getByTestId("flamegraph").focus();
    await view.page.keyboard.press("o");
    await view.page.getByTestId("code").waitFor();
    await view.open({ ...DAY, view: "source", fn: name });
    await chosen(view.page);
    await view.page.getByTestId("code").focus();
    await view.page.keyboard.press("n");
    await view.until(() => document.querySelector('[data-testid="code-row"][aria-selected="true"]')?.textContent.includes("evening"));
    await view.page.keyboard.press("N");
    await view.until(() => document.querySelector('[data-testid="code-row"][aria-selected="true"]')?.textContent.includes("of all"));
    await view.page.keyboard.press("c");
    const copied = await view.page.evaluate(() => navigator.clipboard.readText());
    expect(`file and line in ${copied}`, /lines\.c:\d+$/.test(copied));
    await view.page.keyboard.press("/");
    await view.page.keyboard.type("clock_gettime");
    await view.page.keyboard.press("Enter");
    await view.until(() => document.querySelector('[data-testid="code-row"][aria-selected="true"]')?.textContent.includes("clock_gettime"));
    expect("the function stays", view.parameter("fn") === name);
  },

  "instructions stand below their lines": async (view) => {
    await view.open({ ...DAY, view: "source", fn: name, code: "disassembly" });
    await view.page.locator('[data-kind="instruction"]').first().waitFor();
    seen.instructions = await view.page.locator('[data-kind="instruction"]').allTextContents();
    expect(`imul in ${seen.instructions.slice(0, 9)}`, seen.instructions.some((text) => text.includes("imul")));
    await view.page.emulateMedia({ colorScheme: "dark" });
    await view.page.setViewportSize({ width: 1920, height: 1080 });
    await view.page.screenshot({ path: join(folder, "disassembly-1920-dark.png") });
    await view.page.getByRole("button", { name: "Both", exact: true }).last().click();
    await view.until(() => new URLSearchParams(location.search).get("code") === "both");
    await view.page.locator('[data-kind="instruction"]').first().waitFor();
    const kinds = await view.page.getByTestId("code-row").evaluateAll((rows) => rows.map((row) => row.dataset.kind));
    expect("lines and instructions", kinds.includes("line") && kinds.includes("instruction"));
    await view.page.screenshot({ path: join(folder, "both-1920-dark.png") });
    await expectNoBarriers(view.page);
  },

  "a text that the server lacks is opened here": async (view) => {
    const asked = [];
    await view.page.route("**/api/v1/source?*", async (route) => {
      const answer = await route.fetch().catch(() => undefined);
      const body = await answer?.json().catch(() => undefined);
      // The page has asked anew meanwhile, and waits for this one no more.
      if (!body) return route.abort().catch(() => undefined);
      body.source = { state: "no_roots", message: "this server does not know where sources are", hint: "set server.source_roots" };
      return route.fulfill({ json: body });
    });
    view.page.on("request", (request) => request.method() === "POST" && asked.push(request.url()));
    await view.open({ ...DAY, view: "source", fn: name });
    await view.page.getByTestId("source-missing").waitFor();
    await view.page.screenshot({ path: join(folder, "missing-1440-light.png") });
    const values = await lines(view.page);
    expect("values without a text", values.length >= 3);
    const dropped = await view.page.evaluateHandle(() => {
      const data = new DataTransfer();
      data.items.add(new File(["eins\nzwei\ndrei\n"], "lines.c", { type: "text/plain" }));
      return data;
    });
    for (const type of ["dragenter", "dragover"]) await view.page.dispatchEvent('[data-testid="source-drop"]', type, { dataTransfer: dropped });
    expect("the page around does not offer to take it", (await view.page.getByTestId("file-drop").count()) === 0);
    await view.page.dispatchEvent('[data-testid="source-drop"]', "drop", { dataTransfer: dropped });
    await view.page.getByText("zwei", { exact: true }).waitFor();
    await view.page.getByRole("button", { name: "close the opened file" }).click();
    await view.page.getByTestId("source-file").setInputFiles({ name: "lines.c", mimeType: "text/plain", buffer: Buffer.from("one\ntwo\nthree\n") });
    await view.page.getByText("two", { exact: true }).waitFor();
    expect(`nothing was sent: ${asked}`, asked.length === 0);
  },
};

const { problems } = await walkComplaints(url, walks, { only });
process.stdout.write(`${JSON.stringify({ ...seen, problems })}\n`);
