// What a click on each preset of the window leaves in the address: `node e2e/filter-presets.mjs` prints a list of `{id, filters}` as JSON.
import { runnerImport } from "vite";

const load = async (path) => (await runnerImport(new URL(`../src/model/${path}`, import.meta.url).pathname)).module;
const { FILTER_PRESETS } = await load("filter-presets.ts");
const { withFilters } = await load("filters.ts");
const presets = FILTER_PRESETS.map(({ id, filters }) => ({ id, filters: withFilters("", filters) }));
process.stdout.write(JSON.stringify(presets));
