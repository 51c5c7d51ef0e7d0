// What the window makes of the filters of an address: `node e2e/filter-parameters.mjs SERVER TEXT…` prints for each text the parameters
// that it asks with, and the command line that it offers to copy, as a list of JSON.
import { runnerImport } from "vite";

const [server, ...texts] = process.argv.slice(2);
const load = async (path) => (await runnerImport(new URL(`../src/model/${path}`, import.meta.url).pathname)).module;
const { filterParameters, parseFilters } = await load("filters.ts");
const { queryCommand } = await load("command.ts");
const selection = { query: "{}", type: "cpu", from: "now-1h", to: "now" };
const answers = texts.map((filters) => ({
  parameters: filterParameters(parseFilters(filters)),
  command: queryCommand(server, { ...selection, filters }),
}));
process.stdout.write(JSON.stringify(answers));
