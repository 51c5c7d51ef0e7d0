// Fails when what the browser loads for the first paint is larger than the budget (target U1: 150 KiB brotli).
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync } from "node:zlib";

const BUDGET_BYTES = 150 * 1024;
const dist = new URL("../dist/", import.meta.url).pathname;

const sizes = readdirSync(dist, { recursive: true, withFileTypes: true })
  // The page of one file is not what a browser loads from the server.
  .filter((entry) => entry.isFile() && entry.name !== "offline.html")
  .map((entry) => join(entry.parentPath, entry.name))
  .map((path) => ({ path: path.slice(dist.length), bytes: brotliCompressSync(readFileSync(path)).length }))
  .toSorted((left, right) => right.bytes - left.bytes);

const total = sizes.reduce((sum, { bytes }) => sum + bytes, 0);
for (const { path, bytes } of sizes) process.stdout.write(`${(bytes / 1024).toFixed(1).padStart(8)} KiB br  ${path}\n`);
process.stdout.write(`${(total / 1024).toFixed(1).padStart(8)} KiB br  total, budget ${BUDGET_BYTES / 1024} KiB\n`);
if (total > BUDGET_BYTES) process.exit(1);
