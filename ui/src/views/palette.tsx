// Everything by its name: Ctrl-K, a few letters, Enter.

import { signal, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { fuzzyFind } from "../model/fuzzy.ts";
import { allCommands, type Command } from "./commands.ts";
import { loadSavedViews, savedFilters, savedViews } from "./saved-views.ts";
import { services, top, types } from "./store.ts";

export const isPaletteOpen = signal(false);

const MOST_SHOWN = 12;

export function Palette() {
  const dialog = useRef<HTMLDialogElement>(null);
  useSignalEffect(() => {
    const element = dialog.current;
    if (!element) return;
    if (isPaletteOpen.value && !element.open) element.showModal();
    else if (!isPaletteOpen.value && element.open) element.close();
  });
  return (
    <dialog
      class="help palette"
      ref={dialog}
      aria-label="Commands"
      closedby="any"
      data-testid="palette"
      onClose={() => (isPaletteOpen.value = false)}
    >
      {isPaletteOpen.value && <Search />}
    </dialog>
  );
}

function run(command: Command | undefined): void {
  if (!command) return;
  isPaletteOpen.value = false;
  command.act();
}

function Search() {
  // Views that were saved meanwhile come as they are found.
  useEffect(loadSavedViews, []);
  const saved = savedViews.value;
  const savedToo = savedFilters.value;
  // Names come when they are loaded. A refresh does not change them: it would move the entry that is chosen.
  const loaded = [services, types, top].map(({ value }) => value.data !== undefined);
  const commands = useMemo(allCommands, [saved, savedToo, ...loaded]);
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const found = fuzzyFind(typed, commands, ({ group, title }) => `${group} ${title}`, MOST_SHOWN);
  return (
    <>
      <input
        type="text"
        class="palette-input"
        role="combobox"
        aria-label="Command, service, type or function"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found[at] ? `palette-${at}` : undefined}
        placeholder="Screen, service, type, function or action"
        data-testid="palette-input"
        autocomplete="off"
        spellcheck={false}
        value={typed}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          const moves: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
          const move = moves[event.key];
          if (move !== undefined && found.length > 0) setAt((at + move + found.length) % found.length);
          else if (event.key === "Enter") run(found[at]);
          else return;
          event.preventDefault();
        }}
      />
      <div id="palette-list" class="palette-list" role="listbox" aria-label="Found">
        {found.map((command, index) => (
          <div
            key={`${command.group} ${command.title}`}
            id={`palette-${index}`}
            class="palette-entry"
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            onPointerEnter={() => setAt(index)}
            onClick={() => run(command)}
          >
            <span class="muted">{command.group}</span>
            <span class="truncated">{command.title}</span>
            {command.key && <kbd>{command.key}</kbd>}
          </div>
        ))}
      </div>
      {found.length === 0 && (
        <p class="palette-empty muted" role="status">
          {loaded.every(Boolean) ? "Nothing has a name like this." : "Nothing has a name like this so far: not all names are loaded."}
        </p>
      )}
    </>
  );
}
