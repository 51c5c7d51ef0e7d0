// Walks what readers prefer, of the system or of this page: forced colours, less motion, the colours of a change.
//   node e2e/preferences.mjs URL SERVICE [FOLDER]
// Leaves pictures in FOLDER where one is named. Prints one JSON line; what did not behave is in `problems`.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { expect, walkComplaints } from "./complaint.mjs";

const [url, service, folder] = process.argv.slice(2);
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SERVICE = `{service_name="${service}"}`;
const FORCED_SCREENS = {
  profile: [{ screen: "profile", query: SERVICE }, "[data-testid=flamegraph]:not([hidden])"],
  services: [{ screen: "services" }, "[data-testid=services-row]"],
  compare: [{ screen: "compare", query: SERVICE }, "[data-testid=change-legend]"],
  labels: [{ screen: "labels", query: SERVICE, by: "host" }, ".label-grid li"],
  status: [{ screen: "status" }, ".status-body section"],
};

async function picture(page, name) {
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) });
}

/** How many colours the picture has, and which are most common. */
function pictureColors(page) {
  return page.evaluate(() => {
    const canvas = document.querySelector("[data-testid=flamegraph-canvas]");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const counts = new Map();
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] < 255) continue;
      const color = `${data[at]},${data[at + 1]},${data[at + 2]}`;
      counts.set(color, (counts.get(color) ?? 0) + 1);
    }
    return [...counts].toSorted(([, left], [, right]) => right - left).map(([color]) => color);
  });
}

const walks = {};
for (const colorScheme of ["light", "dark"]) {
  for (const [screen, [parameters, shown]] of Object.entries(FORCED_SCREENS)) {
    walks[`forced colours, ${colorScheme}: ${screen}`] = async (view) => {
      const { page } = view;
      await page.emulateMedia({ forcedColors: "active", colorScheme, reducedMotion: "reduce" });
      await view.open(parameters);
      await page.locator(shown).first().waitFor();
      await page.waitForLoadState("networkidle");
      const [background, canvas] = await page.evaluate(() => {
        const probe = document.createElement("span");
        document.body.append(probe);
        probe.className = "token-probe";
        probe.style.color = "Canvas";
        const pair = [getComputedStyle(document.body).backgroundColor, getComputedStyle(probe).color];
        probe.remove();
        return pair;
      });
      expect(`the page is of the reader's colours: ${background}, not ${canvas}`, background === canvas);
      // Every chosen one of several is told by more than a shade that is not there any more.
      const alike = await page.evaluate(() => {
        const properties = ["backgroundColor", "color", "borderBottom", "outline", "textDecorationLine", "fontWeight"];
        const look = (element) => JSON.stringify(properties.map((property) => getComputedStyle(element)[property]));
        const groups = [...document.querySelectorAll(".segmented, nav")];
        return groups.flatMap((group) => {
          const chosen = group.querySelector("[aria-pressed=true], [aria-checked=true], [aria-current]");
          const other = group.querySelector("[aria-pressed=false], [aria-checked=false], a:not([aria-current]), button:not([aria-current]):not([aria-pressed])");
          return chosen && other && look(chosen) === look(other) ? [group.getAttribute("aria-label") ?? group.className] : [];
        });
      });
      expect(`chosen ones look like others in ${alike.join(", ")}`, alike.length === 0);
      const bars = await page.evaluate(() => {
        const surface = getComputedStyle(document.body).backgroundColor;
        return [...document.querySelectorAll(".cost-bar")].filter((bar) => getComputedStyle(bar).backgroundColor === surface).length;
      });
      expect(`${bars} bars of costs cannot be seen`, bars === 0);
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() =>
        window.axe.run(document, { runOnly: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"] } }),
      );
      expect(violations.map(({ id, nodes }) => `${id} on ${nodes[0].target.join(" ")}`).join("; "), violations.length === 0);
      await picture(page, `forced-${colorScheme}-${screen}`);
    };
  }
}

walks["less motion: nothing moves, also while something loads"] = async (view) => {
  const { page } = view;
  let letThrough;
  const held = new Promise((resolve) => (letThrough = resolve));
  await page.route(/\/api\/v1\/flamegraph/, async (route) => {
    await held;
    await route.continue().catch(() => undefined);
  });
  await view.open({ query: SERVICE });
  await page.getByTestId("wait-line").waitFor();
  const moving = () => page.evaluate(() => document.getAnimations().map(({ effect }) => effect.target.className));
  expect(`moving while waiting: ${await moving()}`, (await moving()).length === 0);
  letThrough();
  await page.locator("[data-testid=flamegraph]:not([hidden])").waitFor();
  await page.keyboard.press("?");
  expect(`moving: ${await moving()}`, (await moving()).length === 0);
};

walks["with motion the wait is seen to go on"] = async (view) => {
  const { page } = view;
  await page.emulateMedia({ reducedMotion: "no-preference" });
  await page.route(/\/api\/v1\/flamegraph/, () => undefined);
  await view.open({ query: SERVICE });
  await page.getByTestId("wait-line").waitFor();
  const moving = await page.evaluate(() => document.getAnimations().map(({ effect }) => effect.target.className));
  expect(`what moves: ${moving}`, moving.includes("wait-bar"));
};

walks["red and green for a change, for who wants them"] = async (view) => {
  const { page } = view;
  await view.flame({ screen: "compare", query: SERVICE, from: "now-2h" });
  await page.getByTestId("change-legend").waitFor();
  const before = await pictureColors(page);
  await page.getByTestId("change-colors").selectOption("red-green");
  await page.waitForFunction((first) => {
    const canvas = document.querySelector("[data-testid=flamegraph-canvas]");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    for (let at = 0; at < data.length; at += 4) {
      // Greener than anything of blue and orange.
      if (data[at + 3] === 255 && data[at + 1] > data[at] + 25 && data[at + 1] > data[at + 2] + 25) return true;
    }
    return first.length === 0;
  }, before);
  await picture(page, "red-green");
  expect("not in the address", !page.url().includes("green"));
  await page.reload();
  await page.getByTestId("change-legend").waitFor();
  expect("remembered", (await page.getByTestId("change-colors").inputValue()) === "red-green");
  const isBlueGreen = before.every((color) => {
    const [red, green, blue] = color.split(",").map(Number);
    return !(green > red + 25 && green > blue + 25);
  });
  expect("blue and orange have no green", isBlueGreen);
};

const seen = await walkComplaints(url, walks, { only: process.env.ONLY });
process.stdout.write(`${JSON.stringify(seen)}\n`);
