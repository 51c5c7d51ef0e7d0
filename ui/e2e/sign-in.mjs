// Signs in and out at a server that asks who is there:
//   node e2e/sign-in.mjs URL FOLDER
// It has the user ann (wonderland, read) and the token ci (correct-horse-battery, read and write). No dialog of the browser may come up.
// Leaves screenshots in FOLDER. Prints one JSON line; what did not behave is in `problems`.
import { join } from "node:path";
import { barriersOf } from "./barriers.mjs";
import { launch, PATIENCE_MS } from "./browser.mjs";

const [url, folder] = process.argv.slice(2);
/** Nobody listens there: what is asked of it is answered here. */
const ELSEWHERE = "http://127.0.0.1:59999/";
const browser = await launch();
const problems = [];

function expect(what, isTrue) {
  if (!isTrue) problems.push(what);
}

async function open(context, search = "?v=1&screen=services&from=now-1h") {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("pageerror", (error) => problems.push(`page error: ${error.message}`));
  await page.goto(url + search);
  return page;
}

async function checkBarriers(page, place) {
  const { found } = await barriersOf(page);
  for (const barrier of found) problems.push(`${place}, ${barrier}`);
}

for (const [colorScheme, width] of [["light", 1280], ["dark", 1920]]) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
  const page = await open(context);
  await page.getByTestId("sign-in").waitFor();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  expect("something is shown to nobody", (await page.getByTestId("screen-services").count()) === 0);
  await page.screenshot({ path: join(folder, `sign-in-${colorScheme}.png`) });
  await checkBarriers(page, `sign-in, ${colorScheme}`);
  await context.close();
}

// A wrong password is told in the server's words; the right one leads to the view that was asked for.
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
const page = await open(context, "?v=1&screen=status");
await page.getByLabel("User", { exact: true }).fill("ann");
await page.getByLabel("Password").fill("looking-glass");
await page.getByTestId("sign-in-submit").click();
await page.getByTestId("sign-in-error").filter({ hasText: "is wrong" }).waitFor();
await page.screenshot({ path: join(folder, "sign-in-wrong.png") });
await page.getByLabel("Password").fill("wonderland");
await page.keyboard.press("Enter");
await page.getByTestId("account").filter({ hasText: "ann" }).waitFor();
expect("the view that was asked for is lost", new URL(page.url()).searchParams.get("screen") === "status");
await page.getByTestId("account").click();
await page.screenshot({ path: join(folder, "signed-in.png") });
await checkBarriers(page, "signed in");

// The cookie is out of reach of scripts, and of what another page sends.
const [cookie] = await context.cookies();
expect(`the cookie is ${JSON.stringify(cookie)}`, cookie?.httpOnly && cookie.sameSite === "Strict" && !cookie.value.includes("wonder"));
expect("a script reads the cookie", (await page.evaluate(() => document.cookie)) === "");
expect("the secret is kept in the page", (await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))).includes("wonder") === false);

// It is there in another tab and after a reload, and ann may only read.
const second = await open(context, "?v=1&screen=profile");
await second.getByTestId("account").filter({ hasText: "ann" }).waitFor();
await second.getByTestId("open-views").click();
await second.getByTestId("views-panel").filter({ hasText: "needs the right to write" }).waitFor();

// Signed out here is signed out there.
await page.getByTestId("sign-out").click();
await page.getByTestId("sign-in").waitFor();
await second.keyboard.press("Escape");
await second.keyboard.press("r");
await second.getByTestId("sign-in").waitFor();
expect("a cookie is left", (await context.cookies()).length === 0);

// A token signs in, too, and writes by the window.
await second.getByRole("button", { name: "Token" }).click();
await second.getByLabel("Token", { exact: true }).fill("correct-horse-battery");
await second.getByTestId("sign-in-submit").click();
await second.getByTestId("account").filter({ hasText: "ci" }).waitFor();
await second.getByTestId("open-views").click();
await second.getByTestId("view-name").fill("of ci");
await second.getByTestId("view-save").click();
await second.getByTestId("saved-view").filter({ hasText: "of ci" }).waitFor();

// A page of another port of the same host has the reader's cookie sent along, and changes nothing with it.
const foreign = await context.newPage();
await foreign.route(`${ELSEWHERE}**`, (route) => route.fulfill({ contentType: "text/html", body: "<p>another site</p>" }));
await foreign.goto(ELSEWHERE);
await foreign.evaluate(async (target) => {
  const body = JSON.stringify({ name: "stolen", kind: "view", address: "?v=1" });
  const send = (init) => fetch(`${target}api/v1/views`, { method: "POST", credentials: "include", ...init }).catch(() => undefined);
  await send({ body, mode: "no-cors" });
  await send({ body, headers: { "x-candela-window": "1" } });
}, url);
const names = await second.evaluate(async () => (await (await fetch("api/v1/views")).json()).views.map(({ name }) => name));
expect(`views are ${names}`, names.length === 1 && names[0] === "of ci");

await browser.close();
process.stdout.write(`${JSON.stringify({ names, problems })}\n`);
