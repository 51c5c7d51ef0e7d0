// What is seen of a profile, for somewhere else: pictures, profiles for other tools, tables, and the command that gives the same answer.

import { ApiError, selectionParameters, type Selection } from "../api/client.ts";
import type { Parameters } from "../api/requests.ts";
import type { TopAnswer } from "../api/types.ts";
import { ROOT } from "../model/flame-tree.ts";
import { sqlStatement } from "../model/sql-statement.ts";
import { tableCsv, tableMarkdown } from "../model/table-text.ts";
import { formatValue } from "../model/units.ts";
import { commandOfView, copy, pathOf } from "./actions.ts";
import { ExportEntry, ExportPopover, fileName, save, savePicture, ServerEntry, type ServerFormat } from "./export-parts.tsx";
import { zoomedNode } from "./highlight.ts";
import { announce } from "./notice.ts";
import { currentType, flameTree, lookedAtFile, requests, selection, top, view } from "./store.ts";
import { topRows } from "./top-table.tsx";

/** Of `/api/v1/flamegraph`. */
const SERVER_FORMATS: readonly ServerFormat[] = [
  { title: "SVG picture", format: "svg", extension: "svg" },
  { title: "HTML page, works offline", format: "html", extension: "html" },
  { title: "pprof", format: "pprof", extension: "pb" },
  { title: "OTLP profiles", format: "otlp", extension: "otlp" },
  { title: "Folded stacks", format: "folded", extension: "folded" },
  { title: "Speedscope", format: "speedscope", extension: "speedscope.json" },
  { title: "Firefox Profiler", format: "firefox", extension: "firefox.json" },
];

/** Of what is zoomed to; profiles are of all that is selected. */
const PICTURES: ReadonlySet<string> = new Set(["svg", "html"]);

export function ExportMenu() {
  return (
    <ExportPopover>
      {(close) => (
        <>
          <ExportEntry label="PNG picture" hint="as on the screen" close={close} act={() => void savePicture()} />
          {SERVER_FORMATS.map((format) => (
            <ServerEntry key={format.format} route="flamegraph" format={format} parameters={parametersOf(format.format)} close={close} />
          ))}
          <ExportEntry label="Table as CSV" hint=".csv" close={close} act={saveTable} />
          <ExportEntry label="Table as Markdown" hint="copied" close={close} act={copyTable} />
          {!lookedAtFile.value && <ExportEntry label="SQL of these functions" hint="copied" close={close} act={() => void copySql()} />}
          <ExportEntry label="Command for a terminal" hint="Y" close={close} act={() => void copy(commandOfView(), "the command for a terminal")} />
        </>
      )}
    </ExportPopover>
  );
}

function parametersOf(format: string): Parameters {
  const parameters = selectionParameters(PICTURES.has(format) ? zoomedTo() : selection.value);
  return format === "svg" ? [...parameters, ["orientation", view.value.orientation]] : parameters;
}

function zoomedTo(): Selection {
  const tree = flameTree.value;
  const node = zoomedNode.value;
  if (!tree || node === ROOT || node >= tree.length) return selection.value;
  return { ...selection.value, path: pathOf(tree, node) };
}

const NOT_IN_THIS_BUILD = 501;
const SQL_PATIENCE_MS = 5000;

/** Copied first: what the server says to it comes too late for a clipboard that wants a click. */
async function copySql(): Promise<void> {
  const { query, range, type } = selection.peek();
  const { filters, path } = view.peek();
  const statement = sqlStatement({ query, typeId: currentType.peek()?.id ?? type, range, filters, path });
  if (statement === undefined) return announce("Mend the selector first: it does not parse");
  await copy(statement, "the SQL");
  const init = { method: "POST", body: "SELECT 1" };
  await requests.send(init, "sql", [], AbortSignal.timeout(SQL_PATIENCE_MS)).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === NOT_IN_THIS_BUILD)
      announce("Copied the SQL. This server was built without it: ask a full build, or DuckDB as docs/storage.md shows");
  });
}

function saveTable(): void {
  const table = currentTable();
  if (table) save(tableCsv(topRows.peek(), table.total), "text/csv", `${fileName()}.csv`);
}

/** More rows than that nobody reads in a text. */
const MOST_COPIED_ROWS = 50;

export function copyTable(): void {
  const table = currentTable();
  if (table) void copy(tableMarkdown(topRows.peek().slice(0, MOST_COPIED_ROWS), table.total, (value) => formatValue(value, table.unit)), "the table");
}

/** Not that of what was looked at before: a file does not tell that it is out of date. */
function currentTable(): TopAnswer | undefined {
  const { data, isStale } = top.peek();
  if (data && !isStale) return data;
  announce("There is no table yet that answers what is looked at: export it when it is there");
  return undefined;
}
