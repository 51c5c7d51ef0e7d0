// The SQL that the window copies: `node e2e/sql-statement.mjs SELECTION…` prints the statement of each selection, which is JSON with
// `query`, `typeId` and `range`, as a list of JSON.
import { runnerImport } from "vite";

const { module: window } = await runnerImport(new URL("../src/model/sql-statement.ts", import.meta.url).pathname);
const statements = process.argv.slice(2).map((selection) => window.sqlStatement({ filters: "", path: "", ...JSON.parse(selection) }));
process.stdout.write(JSON.stringify(statements));
