// What is looked at: service, type, selector, range. And the few things about the page itself.

import { useRef, useState } from "preact/hooks";
import { parseTypeId, typeTitle } from "../model/profile-type.ts";
import { groupTypes, typeLabel } from "../model/type-groups.ts";
import { copyLink } from "./actions.ts";
import { BookmarkIcon, ChooseIcon, LinkIcon, Mark, MoonIcon, SunIcon } from "./icons.tsx";
import { AccountMenu } from "./account-menu.tsx";
import { isHelpOpen } from "./help.tsx";
import { lazyScreen } from "./lazy-screen.tsx";
import { Popover } from "./popover.tsx";
import { isChooserOpen } from "./profile-chooser.tsx";
import { ScreenNav } from "./screens.tsx";
import { ServiceChooser } from "./service-chooser.tsx";
import { FileChip } from "./files/file-chip.tsx";
import { currentType, flame, isLoading, lookedAtFile, types, update, view } from "./store.ts";
import { isDark, toggleTheme } from "./theme.ts";
import { TimePicker } from "./time-picker.tsx";

const SavedViewsPanel = lazyScreen(async () => (await import("./saved-views-panel.tsx")).SavedViewsPanel);

export function Header() {
  return (
    <header class="header">
      <a class="brand" href="?" title="Candela: start over">
        <Mark />
        <span>Candela</span>
      </a>
      <ScreenNav />
      {lookedAtFile.value ? <FileChip /> : <ServiceChooser />}
      <TypeChooser />
      <SelectorField />
      {!lookedAtFile.value && <TimePicker />}
      <div class="header-end">
        <button
          type="button"
          class="icon-button link-copy"
          title="Copy a link to this view, with fixed times (y)"
          aria-label="Copy link to this view"
          onClick={copyLink}
        >
          <LinkIcon />
          <span aria-hidden="true">Copy link</span>
        </button>
        <Popover title="Saved views" align="right" className="views-popover" testId="open-views" label={<BookmarkIcon />}>
          {() => <SavedViewsPanel />}
        </Popover>
        <AccountMenu />
        <button
          type="button"
          class="icon-button"
          data-testid="theme-toggle"
          title={isDark.value ? "Light theme" : "Dark theme"}
          aria-label={isDark.value ? "Switch to the light theme" : "Switch to the dark theme"}
          onClick={toggleTheme}
        >
          {isDark.value ? <SunIcon /> : <MoonIcon />}
        </button>
        <button
          type="button"
          class="icon-button"
          title="Which profile do I need? (w)"
          aria-label="Which profile do I need?"
          data-testid="open-profile-chooser"
          onClick={() => (isChooserOpen.value = true)}
        >
          <ChooseIcon />
        </button>
        <button
          type="button"
          class="icon-button"
          title="Keys (?)"
          aria-label="Keyboard shortcuts"
          onClick={() => (isHelpOpen.value = true)}
        >
          <span aria-hidden="true">?</span>
        </button>
      </div>
      <div class={`progress${isLoading.value ? " is-active" : ""}`} aria-hidden="true" />
    </header>
  );
}

function TypeChooser() {
  const known = types.value.data ?? [];
  const chosen = currentType.value;
  return (
    <label class="select-field">
      <span class="visually-hidden">Profile type</span>
      <select
        value={chosen?.id ?? view.value.type}
        data-testid="type-select"
        onChange={(event) => update({ type: event.currentTarget.value, zoom: "", pinned: "" })}
      >
        {!chosen && <option value={view.value.type}>{typeTitle(parseTypeId(view.value.type))}</option>}
        {groupTypes(known).map((group) => (
          <optgroup key={group.title} label={group.title}>
            {group.types.map((type) => (
              <option key={type.id} value={type.id} title={type.id}>
                {typeLabel(type)}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
    </label>
  );
}

/** Braces alone tell nobody anything: the field says it in words. */
const EVERYTHING = "{}";

function SelectorField() {
  const [text, setText] = useState<string>();
  const { query } = view.value;
  const isGivenUp = useRef(false);
  const isRefused = flame.value.error?.code === "bad_selector";
  const commit = (): void => {
    if (!isGivenUp.current && text !== undefined && text !== query)
      update({ query: text.trim() === "" ? EVERYTHING : text.trim(), zoom: "" });
    isGivenUp.current = false;
    setText(undefined);
  };
  return (
    <input
      class="selector-field mono"
      aria-label="Label selector"
      aria-invalid={isRefused}
      title='Which series: {service_name="checkout", host=~"web-.*"}'
      data-testid="selector-input"
      autocomplete="off"
      spellcheck={false}
      placeholder='all, or {host="a"}'
      value={text ?? (query === EVERYTHING ? "" : query)}
      onInput={(event) => setText(event.currentTarget.value)}
      onBlur={commit}
      onKeyDown={(event) => {
        if (event.key === "Enter") commit();
        else if (event.key === "Escape") {
          // Leaving the field commits, and still sees the text: a new state would come after it.
          isGivenUp.current = true;
          event.currentTarget.blur();
        }
      }}
    />
  );
}
