// The service in the header: a text field that filters and a list to choose from, usable with the keyboard alone.

import { useEffect, useRef, useState } from "preact/hooks";
import { filterServices, sumOfTotals } from "../model/services.ts";
import { formatShare } from "../model/units.ts";
import { ChevronIcon } from "./icons.tsx";
import { isEveryService, selectService, service, services } from "./store.ts";

const ALL = "All services";
/** Neither one nor all: the field beside says which. */
const BY_SELECTOR = "By selector";
const LISTED = 50;

export function ServiceChooser() {
  const [text, setText] = useState<string>();
  const [active, setActive] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const chosen = service.value ?? (isEveryService.value ? ALL : BY_SELECTOR);
  const isOpen = text !== undefined;
  const entries = services.value.data?.services ?? [];
  const whole = sumOfTotals(entries);
  const options = [undefined, ...filterServices(entries, text ?? "").slice(0, LISTED)];

  const choose = (name: string | undefined): void => {
    selectService(name);
    setText(undefined);
    input.current?.blur();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Escape") {
      setText(undefined);
      input.current?.blur();
    } else if (event.key === "Enter") {
      // Nothing matches: Enter must not mean "all".
      if (isOpen && active < options.length) choose(options[active]?.service);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setText(text ?? "");
      setActive((active + (event.key === "ArrowDown" ? 1 : options.length - 1)) % options.length);
    }
  };

  useEffect(() => {
    if (isOpen) document.getElementById(`service-option-${active}`)?.scrollIntoView({ block: "nearest" });
  }, [isOpen, active]);

  return (
    <div class="chooser">
      <input
        ref={input}
        data-testid="service-input"
        class="chooser-input"
        role="combobox"
        aria-label="Service"
        aria-expanded={isOpen}
        aria-controls="service-options"
        aria-activedescendant={isOpen ? `service-option-${active}` : undefined}
        autocomplete="off"
        spellcheck={false}
        value={text ?? chosen}
        placeholder={chosen}
        onFocus={() => {
          setText("");
          setActive(0);
        }}
        onBlur={() => setText(undefined)}
        onInput={(event) => {
          setText(event.currentTarget.value);
          // With something typed, Enter takes the first hit and not "all".
          setActive(event.currentTarget.value === "" ? 0 : 1);
        }}
        onKeyDown={onKeyDown}
      />
      <ChevronIcon />
      {isOpen && (
        <div class="popover-panel align-left chooser-list" role="listbox" id="service-options" aria-label="Services">
          {options.map((entry, index) => (
            <div
              key={entry?.service ?? ""}
              id={`service-option-${index}`}
              role="option"
              aria-selected={index === active}
              tabIndex={-1}
              class="menu-item"
              // Before the blur of the field closes the list.
              onPointerDown={(event) => {
                event.preventDefault();
                choose(entry?.service);
              }}
            >
              <span>{entry?.service ?? ALL}</span>
              {entry && <span class="muted">{formatShare(entry.total, whole)}</span>}
            </div>
          ))}
          {options.length === 1 && <p class="menu-note muted">No service matches “{text}”</p>}
        </div>
      )}
    </div>
  );
}
