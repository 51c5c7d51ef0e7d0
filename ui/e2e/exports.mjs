// Takes everything that the export menu of a profile offers, of a range that was chosen. Called by crates/cli/tests/host/screens.rs:
//   node e2e/exports.mjs URL SERVICE FOLDER
// Each is compared with what the server says of the range; what other programs read stays in FOLDER for them. Prints one JSON line: the
// total, the file of each format, the command for a terminal, and `problems`.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { expect, stillTimes, walkComplaints, windowModule } from "./complaint.mjs";

const [url, service, folder] = process.argv.slice(2);
const { formatValue, formatShare } = await windowModule("model/units.ts");
const query = `{service_name="${service}"}`;
const { hour } = await stillTimes(url);
const PNG_SIGNATURE = "89504e470d0a1a0a";
/** What other programs read, by the name of its entry. */
const FORMATS = { pprof: "pprof", folded: "Folded stacks", speedscope: "Speedscope", firefox: "Firefox Profiler" };
const seen = { files: {} };

/** The range that a name of a file and the address of its link are about. */
function expectRange({ path, address }, chosen) {
  const begin = new Date(Number(chosen.from)).toISOString().slice(0, 16).replace(":", "");
  expect(`${path} is named after ${begin}`, path.includes(`${service}-cpu-${begin}`));
  if (!address.startsWith("http")) return;
  const asked = new URL(address).searchParams;
  expect(`${address} asks about ${chosen.from} to ${chosen.to}`, asked.get("from") === chosen.from && asked.get("to") === chosen.to);
}

/** Quoted cells have no line breaks in these data. */
function cellsOf(line) {
  return [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].map(([, cell]) => cell.replace(/^"|"$/g, "").replaceAll('""', '"'));
}

async function chooseRange(view) {
  await view.flame({ query, view: "both", ...hour });
  const chosen = await view.drag(0.3, 0.6);
  const answer = await view.ask("top", { query, ...chosen, limit: "0" });
  await view.until((wanted) => window.__candela.flamegraph().total === wanted, answer.total);
  await view.until((rows) => document.querySelector("[data-testid=top-table]")?.getAttribute("aria-rowcount") === rows, String(answer.functions.length + 1));
  return { chosen, answer };
}

const walks = {
  "pictures are of what is seen": async (view) => {
    await view.page.addInitScript(() => {
      const draw = CanvasRenderingContext2D.prototype.fillText;
      window.drawnTexts = [];
      CanvasRenderingContext2D.prototype.fillText = function fillText(text, ...rest) {
        window.drawnTexts.push(text);
        return draw.call(this, text, ...rest);
      };
    });
    const { chosen, answer } = await chooseRange(view);
    const { total, unit } = answer;
    const ends = [chosen.from, chosen.to].map((end) => new Date(Number(end)).toISOString());

    const png = await view.exported("PNG picture");
    expectRange(png, chosen);
    const bytes = readFileSync(png.path);
    const canvas = await view.page.getByTestId("flamegraph-canvas").boundingBox();
    const size = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
    expect(`a picture of ${size}`, bytes.subarray(0, 8).toString("hex") === PNG_SIGNATURE && size[0] >= canvas.width && size[1] > canvas.height);
    const title = (await view.page.evaluate(() => window.drawnTexts)).find((text) => text.includes(ends[0]));
    expect(`its title is ${title}`, title === `${service} · cpu · ${formatValue(total, unit)} · ${ends.join(" – ")}`);

    const svg = await view.exported("SVG picture");
    expectRange(svg, chosen);
    const root = /<svg [^>]*data-total="(\d+)"/.exec(readFileSync(svg.path, "utf8"));
    expect(`the drawn total is ${root?.[1]}, not ${total}`, Number(root?.[1]) === total);

    const html = await view.exported("HTML page");
    expectRange(html, chosen);
    const page = await view.context.newPage();
    await page.goto(pathToFileURL(html.path).href);
    await page.waitForFunction((wanted) => window.__candela?.flamegraph()?.total === wanted, total);
    const whole = await page.getByTestId("whole").textContent();
    const clocks = ends.map((end) => end.slice(11, 16));
    expect(`the page says ${whole}, not ${clocks}`, whole.startsWith(formatValue(total, unit)) && clocks.every((clock) => whole.includes(clock)));
  },

  "profiles for other tools are of what is seen": async (view) => {
    const { chosen, answer } = await chooseRange(view);
    seen.total = answer.total;
    seen.range = chosen;
    for (const [format, title] of Object.entries(FORMATS)) {
      const file = await view.exported(title);
      expectRange(file, chosen);
      seen.files[format] = file.path;
    }
  },

  "tables, the command and the statement are of what is seen": async (view) => {
    const { chosen, answer } = await chooseRange(view);
    const { functions, total, unit } = answer;
    const csv = await view.exported("Table as CSV");
    expectRange(csv, chosen);
    const [head, ...lines] = readFileSync(csv.path, "utf8").trimEnd().split("\r\n").map(cellsOf);
    const column = (name) => head.indexOf(name);
    const own = lines.reduce((sum, cells) => sum + Number(cells[column("self")]), 0);
    expect(`${lines.length} rows of ${own}`, lines.length === functions.length && own === total);
    const listed = new Set(lines.map((cells) => ["function", "self", "total"].map((name) => cells[column(name)]).join()));
    const missing = functions.map((row) => [row.name, row.self, row.total].join()).filter((row) => !listed.has(row));
    expect(`rows that are missing: ${missing.slice(0, 3)}`, missing.length === 0);

    await view.page.getByTestId("export").click();
    await view.page.getByRole("button", { name: /^Table as Markdown/ }).click();
    const [first] = functions;
    const row = `| ${formatValue(first.self, unit)} | ${formatShare(first.self, total)} | ${formatValue(first.total, unit)} | ${formatShare(first.total, total)} | \`${first.name}\` |`;
    await view.until(async (wanted) => (await navigator.clipboard.readText()).split("\n")[2] === wanted, row);

    await view.page.getByTestId("export").click();
    await view.page.getByRole("button", { name: /^SQL of these functions/ }).click();
    await view.until(async () => (await navigator.clipboard.readText()).includes("GROUP BY function_name"));
    const statement = await view.copied();
    const conditions = [
      `samples.service_name = '${service}'`,
      `samples.time >= '${new Date(Number(chosen.from)).toISOString()}'`,
      `samples.time < '${new Date(Number(chosen.to)).toISOString()}'`,
    ];
    for (const condition of conditions) expect(`${condition} in ${statement}`, statement.includes(condition));

    await view.page.getByTestId("export").click();
    await view.page.getByRole("button", { name: /^Command for a terminal/ }).click();
    await view.until(async () => (await navigator.clipboard.readText()).startsWith("candela query top"));
    seen.command = await view.copied();
  },
};

const { walked, problems } = await walkComplaints(url, walks, { folder, timezoneId: "UTC" });
process.stdout.write(`${JSON.stringify({ ...seen, walked, problems })}\n`);
