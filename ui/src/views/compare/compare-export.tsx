// What is seen of a comparison, for somewhere else.

import type { Parameters } from "../../api/requests.ts";
import { comparedCsv, comparedMarkdown } from "../../model/compared-text.ts";
import { ROOT } from "../../model/flame-tree.ts";
import { commandOfView, copy, pathOf } from "../actions.ts";
import { ExportEntry, ExportPopover, fileName, save, savePicture, ServerEntry, type ServerFormat } from "../export-parts.tsx";
import { zoomedNode } from "../highlight.ts";
import { announce } from "../notice.ts";
import { flameTree, selection, top, view } from "../store.ts";
import { comparedRows } from "./compared-table.tsx";
import { compared } from "./compared.ts";
import { comparisonParameters } from "./diff-source.ts";

/** Of `/api/v1/diff`. */
const SERVER_FORMATS: readonly ServerFormat[] = [
  { title: "SVG picture", format: "svg", extension: "svg" },
  { title: "HTML page, works offline", format: "html", extension: "html" },
];

/** More rows than that nobody reads in a text. */
const MOST_COPIED_ROWS = 50;

export function CompareExport() {
  return (
    <ExportPopover>
      {(close) => {
        const parameters = pictureParameters();
        return (
          <>
            <ExportEntry label="PNG picture" hint="as on the screen" close={close} act={() => void savePicture(["compared"])} />
            {parameters &&
              SERVER_FORMATS.map((format) => (
                <ServerEntry key={format.format} route="diff" format={format} parameters={parameters} suffix="-diff" close={close} />
              ))}
            <ExportEntry label="Table as CSV" hint=".csv" close={close} act={saveTable} />
            <ExportEntry label="Table as Markdown" hint="copied" close={close} act={copyTable} />
            <ExportEntry label="Command for a terminal" hint="Y" close={close} act={() => void copy(commandOfView(), "the command for a terminal")} />
          </>
        );
      }}
    </ExportPopover>
  );
}

/** Of what is zoomed to. Nothing where the other side's range is none. */
function pictureParameters(): Parameters | undefined {
  const tree = flameTree.value;
  const node = zoomedNode.value;
  const isZoomed = tree && node !== ROOT && node < tree.length;
  const parameters = comparisonParameters(isZoomed ? { ...selection.value, path: pathOf(tree, node) } : selection.value);
  if (!parameters) return undefined;
  const widths = compared.value?.look.widths ?? "after";
  return [...parameters, ["widths", widths], ["orientation", view.value.orientation]];
}

function saveTable(): void {
  if (isCurrent()) save(comparedCsv(comparedRows.peek()), "text/csv", `${fileName()}-diff.csv`);
}

function copyTable(): void {
  const { comparedMeasure } = view.peek();
  const unit = top.peek().data?.unit ?? "";
  if (isCurrent()) void copy(comparedMarkdown(comparedRows.peek().slice(0, MOST_COPIED_ROWS), comparedMeasure, unit), "the table");
}

/** Not that of what was looked at before: a file does not tell that it is out of date. */
function isCurrent(): boolean {
  const { data, isStale } = top.peek();
  if (data && !isStale) return true;
  announce("There is no table yet that answers what is looked at: export it when it is there");
  return false;
}
