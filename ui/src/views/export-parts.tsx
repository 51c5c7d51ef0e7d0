// What the export menus of all screens have in common: the menu, its entries, and files.

import type { ComponentChildren } from "preact";
import type { Parameters } from "../api/requests.ts";
import { formatValue } from "../model/units.ts";
import { DownloadIcon } from "./icons.tsx";
import { announce } from "./notice.ts";
import { picturesAsPng } from "./picture-file.ts";
import { Popover } from "./popover.tsx";
import { flameTree, lookedAtFile, requests, selection, selectionTitle } from "./store.ts";

/** What the server writes. */
export interface ServerFormat {
  title: string;
  /** `format` of the route. */
  format: string;
  extension: string;
}

/** By the key: the menu opens as by a click, and the keyboard goes on in it. */
export function openExport(): void {
  const button = document.querySelector<HTMLButtonElement>("[data-testid=export]");
  if (!button) return announce("Nothing to export here: profiles and comparisons have a menu for it");
  button.click();
  requestAnimationFrame(() => document.querySelector<HTMLElement>(".export-menu .menu-item")?.focus());
}

export function ExportPopover({ children }: { children: (close: () => void) => ComponentChildren }) {
  return (
    <Popover
      title="Export what is seen"
      align="right"
      className="export-menu"
      testId="export"
      label={
        <>
          <DownloadIcon />
          <span>Export</span>
        </>
      }
    >
      {children}
    </Popover>
  );
}

interface EntryProps {
  label: string;
  hint: string;
  close: () => void;
  act: () => void;
}

export function ExportEntry({ label, hint, close, act }: EntryProps) {
  return (
    <button
      type="button"
      class="menu-item"
      onClick={() => {
        close();
        act();
      }}
    >
      <span>{label}</span>
      <span class="muted">{hint}</span>
    </button>
  );
}

interface ServerEntryProps {
  route: string;
  format: ServerFormat;
  parameters: Parameters;
  /** What the name of the file ends with before its extension. */
  suffix?: string;
  close: () => void;
}

/** A link, so that the browser shows its progress; what is asked of a file is sent with it, which no link can. */
export function ServerEntry({ route, format: { title, format, extension }, parameters, suffix = "", close }: ServerEntryProps) {
  const asked: Parameters = [...parameters, ["format", format]];
  const name = `${fileName()}${suffix}.${extension}`;
  if (lookedAtFile.value) return <ExportEntry label={title} hint={`.${extension}`} close={close} act={() => void saveAnswer(route, asked, name)} />;
  return (
    <a class="menu-item" href={requests.url(route, asked)} download={name} data-testid={`export-${format}`} onClick={close}>
      <span>{title}</span>
      <span class="muted">.{extension}</span>
    </a>
  );
}

async function saveAnswer(route: string, parameters: Parameters, name: string): Promise<void> {
  try {
    const response = await requests.get(route, parameters, new AbortController().signal);
    save(await response.blob(), response.headers.get("content-type") ?? "", name);
  } catch (error) {
    announce(error instanceof Error ? error.message : String(error));
  }
}

/** Tells service, type and time apart in a folder of downloads. */
export function fileName(): string {
  const { range, type } = selection.value;
  const when = new Date(range.from).toISOString().slice(0, 16).replaceAll(":", "");
  return [selectionTitle.value, type.split(":")[0] ?? "", when]
    .map((part) => part.replaceAll(/[^\w.-]+/g, "_").replaceAll(/^_+|_+$/g, ""))
    .join("-");
}

export function save(content: BlobPart, type: string, name: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The download has begun by the next task.
  setTimeout(() => URL.revokeObjectURL(url), 0);
}

/** As on the screen, with a line that says what it is. */
export async function savePicture(what: readonly string[] = []): Promise<void> {
  const { range, type } = selection.peek();
  const tree = flameTree.peek();
  const words = [
    selectionTitle.peek(),
    type,
    ...(tree ? [formatValue(tree.rootTotal, tree.header.unit)] : []),
    `${new Date(range.from).toISOString()} – ${new Date(range.to).toISOString()}`,
    ...what,
  ];
  const picture = await picturesAsPng(words.join(" · "));
  if (picture) save(picture, "image/png", `${fileName()}.png`);
  else announce("There is no picture on the screen: choose Flame, Sandwich or Chart");
}
