// Compares the window, pixel by pixel, with pictures that were looked at:
//   node e2e/goldens.mjs URL [FOLDER]
// URL is a demo whose clock stands at AT: `candela demo --seed 1 --at 1795176000`. What differs is left in FOLDER. Prints one JSON
// line; what differs is in `problems`, and `skipped` says why nothing could be compared. UPDATE_GOLDEN=1 writes the pictures anew.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { launch, PATIENCE_MS } from "./browser.mjs";

const [url, folder] = process.argv.slice(2);
const AT = 1_795_176_000_000;
/** Of Debian's package fonts-dejavu-core. */
const FONTS = ["DejaVu Sans", "DejaVu Sans Mono"];
const GOLDENS = new URL("golden/", import.meta.url).pathname;
const VIEWPORT = { width: 1080, height: 560 };
/** By scale: of the larger pictures the middle says as much, and the repository stays small. */
const CLIPS = { 1: { x: 0, y: 0, ...VIEWPORT }, 2: { x: 200, y: 0, width: 700, height: VIEWPORT.height } };

/** A channel may be off by this much: edges of letters differ between versions of a browser. */
const SHADES = 40;
/** So many pixels of a million may be off by more. */
const PIXELS_PER_MILLION = 1500;

const SERVICE = 'query={service_name="checkout"}';
const HOUR = `from=${AT - 3600e3}&to=${AT}`;
const FLAME = "[data-testid=flamegraph]:not([hidden])";

/** Address, what is there when it is drawn, preferences of the reader, and whether the heatmap is there, in which much is to be seen. */
const STATES = {
  services: [`screen=services&${HOUR}`, "[data-testid=services-row]"],
  profile: [`screen=profile&${SERVICE}&${HOUR}`, FLAME, {}, "open"],
  "profile-dark": [`screen=profile&${SERVICE}&${HOUR}`, FLAME, { colorScheme: "dark" }],
  search: [`screen=profile&view=flame&search=json|pgx&${SERVICE}&${HOUR}`, FLAME],
  filters: [
    `screen=profile&view=flame&dir=flame&color=kind&${SERVICE}&${HOUR}&filters=${encodeURIComponent("hide=kind:kernel\n!focus=fn:main\nshow_from=fn:PlaceOrder")}`,
    FLAME,
  ],
  table: [`screen=profile&view=table&sort=total&${SERVICE}&${HOUR}`, "[data-testid=top-row]"],
  tree: [`screen=profile&view=tree&${SERVICE}&${HOUR}`, "[data-testid=tree-row]", { colorScheme: "dark" }],
  sandwich: [`screen=profile&view=sandwich&fn=encoding/json.stringEncoder&${SERVICE}&${HOUR}`, ".sandwich-middle"],
  waits: [`screen=profile&view=flame&type=off_cpu&${SERVICE}&${HOUR}`, "[data-testid=reason-legend]"],
  compare: [`screen=compare&${SERVICE}&${HOUR}`, "[data-testid=change-legend]"],
  labels: [`screen=labels&by=region&${SERVICE}&${HOUR}`, ".label-grid li"],
  nothing: [`screen=profile&query={service_name="nobody"}&${HOUR}`, "[data-testid=profile-state]"],
};

function missingFont() {
  const known = execFileSync("fc-list", [":", "family"], { encoding: "utf8" });
  return FONTS.find((font) => !known.split(/[\n,]/).includes(font));
}

/** Everything that a host decides, decided. */
async function open(browser, scale, preferences = {}, heatmap = "closed") {
  const context = await browser.newContext({
    viewport: VIEWPORT,
    deviceScaleFactor: scale,
    colorScheme: "light",
    reducedMotion: "reduce",
    locale: "en-US",
    timezoneId: "UTC",
    ...preferences,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.clock.setFixedTime(AT);
  await page.addInitScript(([sans, mono, strip]) => {
    localStorage.setItem("candela.heatmap", strip);
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`:root { --font: "${sans}" !important; --font-mono: "${mono}" !important; }`);
    document.adoptedStyleSheets = [sheet];
  }, [...FONTS, heatmap]);
  return { context, page };
}

async function pictureOf(page, scale, [address, shown]) {
  await page.goto(new URL(`?v=1&live=0&${encodeURI(address).replaceAll("%25", "%")}`, url).href);
  await page.locator(shown).first().waitFor();
  await page.waitForLoadState("networkidle");
  await page.evaluate(async () => {
    await document.fonts.ready;
    // What is drawn after a moment at rest: outlines, the finest boxes.
    for (let frame = 0; frame < 20; frame++) await new Promise(requestAnimationFrame);
    // Commands name the server, whose port is another one in every run.
    for (const code of document.querySelectorAll("code, pre")) {
      if (code.children.length === 0) code.textContent = code.textContent.replace(location.origin, "http://127.0.0.1:4040");
    }
  });
  await page.mouse.move(0, 0);
  return page.screenshot({ animations: "disabled", caret: "hide", clip: CLIPS[scale] });
}

/** As `pictures-page.js` compares them. */
function compare(desk, expected, actual) {
  return desk.evaluate((pair) => window.pictures.compare(...pair), [urlOf(expected), urlOf(actual), SHADES]);
}

function urlOf(png) {
  return `data:image/png;base64,${png.toString("base64")}`;
}

/** With 256 colours, which are within SHADES of what was seen, and a fifth as large. */
async function asPalettePng(desk, png) {
  const { width, height, palette, indices } = await desk.evaluate((picture) => window.pictures.reduce(picture), urlOf(png));
  const rows = Buffer.from(indices, "base64");
  // Each row begins with its filter: none.
  const scanlines = Buffer.concat(Array.from({ length: height }, (_, row) => [Buffer.of(0), rows.subarray(row * width, (row + 1) * width)]).flat());
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  // Eight bits, by palette.
  head.set([8, 3, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from("89504e470d0a1a0a", "hex"),
    chunk("IHDR", head),
    chunk("PLTE", Buffer.from(palette)),
    chunk("IDAT", deflateSync(scanlines, { level: 9, memLevel: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

async function run() {
  const font = missingFont();
  if (font !== undefined) return { skipped: `the font ${font} is not installed: apt-get install fonts-dejavu-core`, problems: [] };
  const isUpdate = process.env.UPDATE_GOLDEN === "1";
  if (isUpdate) mkdirSync(GOLDENS, { recursive: true });
  if (folder) mkdirSync(folder, { recursive: true });
  const browser = await launch(["--font-render-hinting=none", "--disable-lcd-text", "--force-color-profile=srgb", "--hide-scrollbars"]);
  // Decodes and compares: the page of the window may not fetch what it is given.
  const desk = await browser.newPage();
  await desk.addInitScript({ path: new URL("pictures-page.js", import.meta.url).pathname });
  await desk.goto("about:blank");
  const problems = [];
  let compared = 0;
  for (const scale of [1, 2]) {
    for (const [name, state] of Object.entries(STATES)) {
      const file = `${name}@${scale}x`;
      const { context, page } = await open(browser, scale, state[2], state[3]);
      page.on("pageerror", (error) => problems.push(`${file}: page error: ${error.message}`));
      const actual = await pictureOf(page, scale, state);
      await context.close();
      const golden = join(GOLDENS, `${file}.png`);
      if (isUpdate) {
        writeFileSync(golden, await asPalettePng(desk, actual));
        continue;
      }
      if (!existsSync(golden)) {
        problems.push(`${file}: there is no picture to compare with`);
        continue;
      }
      const { perMillion, reason, marks } = await compare(desk, readFileSync(golden), actual);
      compared++;
      if (perMillion <= PIXELS_PER_MILLION) continue;
      problems.push(`${file}: ${reason ?? `${Math.round(perMillion)} pixels of a million differ`}`);
      if (folder) {
        writeFileSync(join(folder, `${file}.actual.png`), actual);
        if (marks) writeFileSync(join(folder, `${file}.differs.png`), Buffer.from(marks, "base64"));
      }
    }
  }
  await browser.close();
  return { compared, problems };
}

process.stdout.write(`${JSON.stringify(await run())}\n`);
