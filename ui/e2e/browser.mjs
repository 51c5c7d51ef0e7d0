// The browser of the system, and a page in it that tells what goes wrong and what it asks the network for.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

/** How long a page may take for anything: two cores may be busy with something else. Nothing waits as long unless it fails. */
export const PATIENCE_MS = 60_000;

const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** `more` are arguments of the browser. */
export function launch(more = []) {
  return chromium.launch({
    executablePath: BROWSERS.find((path) => existsSync(path)),
    timeout: PATIENCE_MS,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      ...more,
    ],
  });
}

export async function open() {
  const browser = await launch();
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const problems = [];
  page.on("pageerror", (error) => problems.push(`page error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) problems.push(`request: ${request.url()}`);
  });
  return { browser, page, problems };
}
