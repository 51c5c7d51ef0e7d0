// What the walks of the complaints share: a page on a view, figures of the picture, and what the server says of the same question.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runnerImport } from "vite";
import { launch, PATIENCE_MS } from "./browser.mjs";

const HOUR_MS = 3600e3;
/** Not UTC, so that one is told from the other. */
const ZONE = "Asia/Tokyo";

/** A module of the window, to say figures as it does. */
export async function windowModule(path) {
  return (await runnerImport(new URL(`../src/${path}`, import.meta.url).pathname)).module;
}

/** Runs each complaint on a page of its own; what it throws is a problem under its name. What is downloaded stays in a folder that is given. */
export async function walkComplaints(url, complaints, { only, folder, timezoneId = ZONE } = {}) {
  const browser = await launch();
  const problems = [];
  const walked = [];
  const downloads = folder ?? mkdtempSync(join(tmpdir(), "candela-walk-"));
  for (const [name, walk] of Object.entries(complaints)) {
    if (only && !name.startsWith(only)) continue;
    const context = await browser.newContext({
      viewport: { width: 1440, height: 900 },
      reducedMotion: "reduce",
      timezoneId,
      permissions: ["clipboard-read", "clipboard-write"],
    });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("pageerror", (error) => problems.push(`${name}: page error: ${error.message}`));
    page.on("request", (request) => {
      const isOurs = request.url().startsWith(new URL(url).origin) || /^(data|blob):/.test(request.url());
      if (!isOurs) problems.push(`${name}: asked another host: ${request.url()}`);
    });
    try {
      await walk(new View(page, url, context, downloads));
      walked.push(name);
    } catch (error) {
      problems.push(`${name}: ${error.message.split("\n").slice(0, 4).join(" ")}`);
    }
    await context.close();
  }
  await browser.close();
  if (folder === undefined) rmSync(downloads, { recursive: true });
  return { walked, problems };
}

export function expect(what, isTrue) {
  if (!isTrue) throw new Error(what);
}

/** What a server says; what it refuses is thrown. */
export async function ask(url, route, parameters = {}) {
  const answer = await fetch(new URL(`api/v1/${route}?${new URLSearchParams(parameters)}`, url));
  if (!answer.ok) throw new Error(`${route} answers ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

/** The last hour and the last day of a demo, between times that stand: what is asked twice has one answer. */
export async function stillTimes(url) {
  const { first_ms: first, end_ms: end } = await ask(url, "services", { from: "now-2d" });
  return { hour: { from: String(end - HOUR_MS), to: String(end) }, day: { from: String(first), to: String(end) } };
}

/** A page that shows one address of the window. */
export class View {
  constructor(page, url, context, downloads) {
    this.page = page;
    this.url = url;
    this.context = context;
    this.downloads = downloads;
  }

  /** Times that stand still, and nothing that refreshes itself. */
  async open(parameters) {
    const query = new URLSearchParams({ v: "1", live: "0", ...parameters });
    await this.page.goto(new URL(`?${query}`, this.url).href);
    return this;
  }

  async flame(parameters = {}) {
    await this.open({ view: "flame", ...parameters });
    await this.page.waitForFunction(() => (window.__candela?.flamegraph()?.visible.length ?? 0) > 1);
    return this;
  }

  graph() {
    return this.page.evaluate(() => window.__candela.flamegraph());
  }

  ask(route, parameters) {
    return ask(this.url, route, parameters);
  }

  parameter(name) {
    return new URL(this.page.url()).searchParams.get(name);
  }

  until(predicate, argument) {
    return this.page.waitForFunction(predicate, argument);
  }

  /** The box of a function as soon as it is in the picture. */
  async box(name) {
    const found = await this.page.waitForFunction(
      (wanted) => window.__candela?.flamegraph()?.visible.find((candidate) => candidate.name === wanted),
      name,
    );
    return found.jsonValue();
  }

  async pointAt(box) {
    const canvas = await this.page.getByTestId("flamegraph-canvas").boundingBox();
    const x = canvas.x + box.x + box.w / 2;
    const y = canvas.y + box.y + box.h / 2;
    await this.page.mouse.move(x, y);
    return { x, y };
  }

  async click(box, options = {}) {
    const { x, y } = await this.pointAt(box);
    await this.page.mouse.click(x, y, options);
  }

  text(testId) {
    return this.page.getByTestId(testId).first().textContent();
  }

  copied() {
    return this.page.evaluate(() => navigator.clipboard.readText());
  }

  /** The clipboard takes a text some time after the key. */
  async hasCopied(text) {
    await this.until(async (wanted) => (await navigator.clipboard.readText()) === wanted, text);
  }

  /** Where an element is; it may be drawn anew between being found and being asked. */
  async place(locator, attempts = 20) {
    await locator.waitFor();
    const place = await locator.boundingBox();
    if (place || attempts === 1) return place;
    return this.place(locator, attempts - 1);
  }

  /** A range out of the line, by parts of its width; what the address says of it then. */
  async drag(begin, end) {
    const line = await this.place(this.page.getByTestId("series-chart").locator(".u-over"));
    const y = line.y + line.height / 2;
    await this.page.mouse.move(line.x + line.width * begin, y);
    await this.page.mouse.down();
    await this.page.mouse.move(line.x + line.width * end, y, { steps: 5 });
    const before = this.parameter("from");
    await this.page.mouse.up();
    await this.until((was) => new URLSearchParams(location.search).get("from") !== was, before);
    return { from: this.parameter("from"), to: this.parameter("to") };
  }

  /** The file that an entry of the export menu leaves. */
  async exported(title) {
    await this.page.getByTestId("export").click();
    const entry = this.page.locator(".export-menu .menu-item").filter({ hasText: title });
    const [download] = await Promise.all([this.page.waitForEvent("download"), entry.click()]);
    const path = join(this.downloads, download.suggestedFilename());
    await download.saveAs(path);
    return { path, address: download.url() };
  }
}
