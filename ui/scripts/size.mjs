// Fails when what the browser loads for the first paint is larger than the budget (target U1: 150 KiB brotli), or everything together
// larger than what is thought good for it. What a screen loads when it is opened is not of the first paint. And fails when more packages
// of npm come with the page than may: those that its own packages bring count, too.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync } from "node:zlib";

const FIRST_PAINT_BYTES = 150 * 1024;
const TOTAL_BYTES = 180 * 1024;
const RUNTIME_PACKAGES = 6;
const dist = new URL("../dist/", import.meta.url).pathname;

const sizes = readdirSync(dist, { recursive: true, withFileTypes: true })
  // The page of one file is not what a browser loads from the server.
  .filter((entry) => entry.isFile() && entry.name !== "offline.html")
  .map((entry) => join(entry.parentPath, entry.name))
  .map((path) => ({ path: path.slice(dist.length), bytes: brotliCompressSync(readFileSync(path)).length }))
  .toSorted((left, right) => right.bytes - left.bytes);

const named = (text, pattern) => [...text.matchAll(pattern)].map(([, name]) => `assets/${name}`);

/** The page, what it names, and what that imports in turn; `import(…)` is for later. */
function loadedAtFirst() {
  const first = new Set(["index.html"]);
  const page = readFileSync(join(dist, "index.html"), "utf8");
  const waiting = named(page, /(?:src|href)="[^"]*assets\/([^"]+)"/g);
  while (waiting.length > 0) {
    const path = waiting.pop();
    if (first.has(path)) continue;
    first.add(path);
    if (path.endsWith(".js")) waiting.push(...named(readFileSync(join(dist, path), "utf8"), /(?:from|import)\s*["']\.\/([^"']+)["']/g));
  }
  return first;
}

/** What the lockfile installs for the page itself, and not to build or test it. */
function runtimePackages() {
  const { packages } = JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8"));
  return Object.keys(packages).filter((path) => path !== "" && !packages[path].dev && !packages[path].devOptional);
}

function check(what, bytes, budget) {
  process.stdout.write(`${(bytes / 1024).toFixed(1).padStart(8)} KiB br  ${what}, budget ${budget / 1024} KiB\n`);
  if (bytes > budget) process.exitCode = 1;
}

const sum = (files) => files.reduce((total, { bytes }) => total + bytes, 0);
const first = loadedAtFirst();
for (const { path, bytes } of sizes) {
  process.stdout.write(`${(bytes / 1024).toFixed(1).padStart(8)} KiB br  ${path}${first.has(path) ? "  at first" : ""}\n`);
}
check("first paint", sum(sizes.filter(({ path }) => first.has(path))), FIRST_PAINT_BYTES);
check("everything", sum(sizes), TOTAL_BYTES);

const packages = runtimePackages().map((path) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length));
process.stdout.write(`${String(packages.length).padStart(8)} runtime packages, budget ${RUNTIME_PACKAGES}: ${packages.join(", ")}\n`);
if (packages.length > RUNTIME_PACKAGES) process.exitCode = 1;
