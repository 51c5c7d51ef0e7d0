// The filters in their order, each a chip that can be changed, switched off, moved and removed; and where the next one is typed.

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import "../../styles/filters.css";
import { FILTER_PRESETS } from "../../model/filter-presets.ts";
import {
  FILTER_KINDS,
  movedFilter,
  parseFilters,
  printFilters,
  withFilter,
  withFilters,
  type Filter,
  type FilterKind,
} from "../../model/filters.ts";
import { formatShare, formatValue } from "../../model/units.ts";
import { CloseIcon } from "../icons.tsx";
import { lazyScreen } from "../lazy-screen.tsx";
import { Popover } from "../popover.tsx";
import { flame, flameTree, update, view } from "../store.ts";
import { followWhole, shownTotal, wholeTotal } from "../whole.ts";

const KIND_TITLES: Record<FilterKind, string> = {
  focus: "only stacks with",
  ignore: "no stacks with",
  hide: "hide frames",
  show: "only frames",
  show_from: "from the first",
  collapse: "collapse",
  tagfocus: "only labels",
  tagignore: "no labels",
};

const SavedFilters = lazyScreen(async () => (await import("../saved-filters.tsx")).SavedFilters);
const PATTERN_PLACEHOLDER = "regex, or fn: file: line: pkg: bin: kind:";

/** The place of the chip that is being changed. */
const edited = signal<number | undefined>(undefined);

function setFilters(filters: readonly Filter[]): void {
  update({ filters: printFilters(filters), zoom: "", path: "" });
}

/** `mayAdd`: also where the next one is typed. */
export function FilterChips({ mayAdd = true }: { mayAdd?: boolean }) {
  useEffect(followWhole, []);
  const filters = parseFilters(view.value.filters);
  return (
    <div class="filters" role="group" aria-label="Filters" data-testid="filters">
      {filters.map((filter, place) => (
        <Chip key={`${filter.kind} ${filter.pattern}`} filter={filter} place={place} filters={filters} />
      ))}
      {mayAdd && (
        <>
          <AddFilter filters={filters} />
          <Presets />
        </>
      )}
      {filters.length > 1 && (
        <button type="button" class="link-button" onClick={() => setFilters([])}>
          clear all
        </button>
      )}
      <Refusal />
      <Denominators />
    </div>
  );
}

interface ChipProps {
  filter: Filter;
  place: number;
  filters: readonly Filter[];
}

function Chip({ filter, place, filters }: ChipProps) {
  const replace = (next: Filter): void => setFilters(filters.with(place, next));
  if (edited.value === place) {
    return (
      <PatternField
        initial={filter.pattern}
        label="Pattern"
        onCommit={(pattern) => {
          edited.value = undefined;
          if (pattern === "") setFilters(filters.toSpliced(place, 1));
          else if (pattern !== filter.pattern) replace({ ...filter, pattern });
        }}
        onGiveUp={() => (edited.value = undefined)}
      />
    );
  }
  return (
    <span class={`filter-chip${filter.isOff ? " is-off" : ""}`} data-testid="filter-chip">
      <button
        type="button"
        class="filter-kind"
        aria-pressed={!filter.isOff}
        title={filter.isOff ? "Switch on" : "Switch off, and keep it"}
        onClick={() => replace({ ...filter, isOff: !filter.isOff })}
      >
        {KIND_TITLES[filter.kind]}
      </button>
      <button
        type="button"
        class="filter-pattern mono truncated"
        title={`${filter.pattern}\nClick to change; Alt with left and right moves it; Delete removes it`}
        onClick={() => (edited.value = place)}
        onKeyDown={(event) => {
          const by = event.altKey ? { ArrowLeft: -1, ArrowRight: 1 }[event.key] : undefined;
          if (by !== undefined) update({ filters: movedFilter(view.peek().filters, place, place + by), zoom: "", path: "" });
          else if (event.key === "Delete" || event.key === "Backspace") setFilters(filters.toSpliced(place, 1));
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      >
        {filter.pattern}
      </button>
      <button
        type="button"
        class="clear-button"
        aria-label={`Remove the filter ${filter.kind} ${filter.pattern}`}
        onClick={() => setFilters(filters.toSpliced(place, 1))}
      >
        <CloseIcon />
      </button>
    </span>
  );
}

function AddFilter({ filters }: { filters: readonly Filter[] }) {
  const [kind, setKind] = useState<FilterKind>("focus");
  return (
    <span class="filter-add">
      <label class="inline-field">
        <span class="visually-hidden">What the filter does</span>
        <select value={kind} data-testid="filter-kind" onChange={(event) => setKind(event.currentTarget.value as FilterKind)}>
          {FILTER_KINDS.map((name) => (
            <option key={name} value={name}>
              {KIND_TITLES[name]}
            </option>
          ))}
        </select>
      </label>
      <PatternField
        initial=""
        label="Pattern of a new filter"
        placeholder={kind === "collapse" ? "recursion, or pkg: bin: kind:" : PATTERN_PLACEHOLDER}
        onCommit={(pattern) => {
          if (pattern !== "") update({ filters: withFilter(view.peek().filters, kind, pattern), zoom: "", path: "" });
        }}
        onGiveUp={() => undefined}
        onEmptyBackspace={() => filters.length > 0 && setFilters(filters.slice(0, -1))}
      />
    </span>
  );
}

interface PatternFieldProps {
  initial: string;
  label: string;
  placeholder?: string;
  onCommit: (pattern: string) => void;
  onGiveUp: () => void;
  onEmptyBackspace?: () => void;
}

function PatternField({ initial, label, placeholder = PATTERN_PLACEHOLDER, onCommit, onGiveUp, onEmptyBackspace }: PatternFieldProps) {
  const [text, setText] = useState(initial);
  const isGivenUp = useRef(false);
  const commit = (): void => {
    if (!isGivenUp.current) onCommit(text.trim());
    isGivenUp.current = false;
    if (initial === "") setText("");
  };
  return (
    <input
      class="filter-field mono"
      aria-label={label}
      data-testid={initial === "" ? "filter-input" : "filter-edit"}
      placeholder={placeholder}
      title="A regular expression over function, file and binary; or over one: fn: file: pkg: bin: line: kind:"
      autocomplete="off"
      spellcheck={false}
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
      onBlur={commit}
      onKeyDown={(event) => {
        if (event.key === "Enter") commit();
        else if (event.key === "Escape") {
          isGivenUp.current = true;
          setText(initial);
          onGiveUp();
          event.currentTarget.blur();
          event.stopPropagation();
        } else if (event.key === "Backspace" && text === "" && onEmptyBackspace) onEmptyBackspace();
      }}
    />
  );
}

function Presets() {
  return (
    <Popover title="Presets of filters" testId="filter-presets" label="Presets">
      {(close) => (
        <>
        {FILTER_PRESETS.map(({ name, about, filters }) => (
          <button
            type="button"
            class="menu-item filter-preset"
            key={name}
            onClick={() => {
              close();
              update({ filters: withFilters(view.peek().filters, filters), zoom: "", path: "" });
            }}
          >
            <span>{name}</span>
            <span class="muted">{about}</span>
          </button>
        ))}
        <SavedFilters />
        </>
      )}
    </Popover>
  );
}

/** What the server says of a pattern that it does not take. */
function Refusal() {
  const { error } = flame.value;
  if (!error || view.value.filters === "" || error.status !== 400) return null;
  return (
    <span class="filter-refusal" role="alert">
      {error.message}
    </span>
  );
}

/** Both of what a share may be of. */
function Denominators() {
  const [shown, whole] = [shownTotal.value, wholeTotal.value];
  if (shown === undefined || whole === undefined) return null;
  const unit = flameTree.value?.header.unit ?? "";
  return (
    <span class="filters-share muted" role="status" data-testid="filters-share">
      shown: {formatShare(shown, whole)} of all, {formatValue(shown, unit)} of {formatValue(whole, unit)}
    </span>
  );
}
