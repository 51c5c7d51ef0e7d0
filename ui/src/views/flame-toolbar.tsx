// Above the panes: search with the share it finds, the way back up, and how the picture is drawn.

import type { ComponentChildren } from "preact";
import { ROOT } from "../model/flame-tree.ts";
import { formatInteger, formatShare } from "../model/units.ts";
import type { ColorBy, PaneChoice } from "../state/schema.ts";
import { openSource, sourceSteps, stepHighlight, zoomTo, zoomToHighlight } from "./actions.ts";
import { coloring, colorings } from "./coloring.ts";
import { highlight, highlightInView, isSearchTooSlow, isZoomLost, parsedSearch, zoomedNode } from "./highlight.ts";
import { SEARCH_INPUT_ID } from "./global-keys.ts";
import { CloseIcon, FlipIcon, SearchIcon } from "./icons.tsx";
import { Segmented } from "./segmented.tsx";
import { flameTree, hasServer, update, view } from "./store.ts";
import { wholeTotal } from "./whole.ts";

const LAYOUT_TITLES: Record<PaneChoice, string> = {
  flame: "Flame",
  both: "Both",
  table: "Table",
  tree: "Tree",
  sandwich: "Sandwich",
  chart: "Chart",
  source: "Source",
};

interface FlameToolbarProps {
  /** What chooses the colours; by default, which part of a frame gives them. */
  coloring?: ComponentChildren;
  /** Those that the page has, in the order of their names. */
  layouts?: readonly PaneChoice[];
  /** At the end. */
  actions?: ComponentChildren;
}

export function FlameToolbar({ coloring: colors = <ColorChooser />, layouts = ["both", "flame", "table"], actions }: FlameToolbarProps) {
  const { panes, orientation } = view.value;
  return (
    <div class="toolbar">
      <SearchBox />
      <SearchShare />
      <div class="toolbar-end">
        {panes !== "source" && (
          <>
            {colors}
            <button
              type="button"
              class="icon-button"
              title={orientation === "icicle" ? "Root at the bottom (i)" : "Root on top (i)"}
              aria-label="Turn the flame graph over"
              aria-pressed={orientation === "flame"}
              onClick={() => update({ orientation: orientation === "icicle" ? "flame" : "icicle" })}
            >
              <FlipIcon />
            </button>
          </>
        )}
        <Segmented
          label="Panes"
          value={panes}
          options={layouts.map((layout) => [layout, LAYOUT_TITLES[layout]])}
          onChange={(value) => update({ panes: value })}
        />
        {actions}
      </div>
    </div>
  );
}

function ColorChooser() {
  return (
    <label class="inline-field">
      <span>Colour</span>
      <select
        // The word beside it gives way in narrow windows.
        aria-label="Colour"
        title="What gives a frame its colour"
        value={coloring.value}
        data-testid="color-select"
        onChange={(event) => update({ colorBy: event.currentTarget.value as ColorBy })}
      >
        {colorings.value.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    </label>
  );
}

function SearchBox() {
  const parsed = parsedSearch.value;
  const isCode = view.value.panes === "source" && view.value.pinned !== "";
  return (
    <div class={`search${parsed.ok ? "" : " is-invalid"}`}>
      <SearchIcon />
      <input
        id={SEARCH_INPUT_ID}
        type="search"
        placeholder={isCode ? "Search the code (regex)" : "Search functions (regex)"}
        title={isCode ? "Lines and instructions that match" : "Functions that match; or file:, line:, bin:, pkg:, kind: and an expression"}
        aria-label={isCode ? "Search the code by regular expression" : "Search functions by regular expression"}
        aria-invalid={!parsed.ok}
        autocomplete="off"
        spellcheck={false}
        data-testid="search-input"
        value={view.value.search}
        onInput={(event) => search(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") stepHighlight(event.shiftKey ? -1 : 1);
          else if (event.key === "Escape") {
            if (view.value.search === "") event.currentTarget.blur();
            else update({ search: "" });
          }
        }}
      />
      {view.value.search === "" ? (
        <kbd>/</kbd>
      ) : (
        <ClearButton label="Clear the search" onClick={() => update({ search: "" })} />
      )}
    </div>
  );
}

/** In the source of a function one looks for text in it, and the function stays. */
function search(text: string): void {
  update(view.peek().panes === "source" && view.peek().pinned !== "" ? { search: text } : { search: text, pinned: "" });
}

function SearchShare() {
  const parsed = parsedSearch.value;
  const tree = flameTree.value;
  const found = highlight.value;
  const inView = highlightInView.value;
  const { pinned } = view.value;
  if (!parsed.ok) {
    return (
      <p class="search-share is-error" role="status" data-testid="search-share">
        {parsed.message}
      </p>
    );
  }
  if (isSearchTooSlow.value) {
    return (
      <p class="search-share is-error" role="status" data-testid="search-share">
        this expression takes too long: make it simpler
      </p>
    );
  }
  if (!found || !tree) return <p class="search-share" role="status" data-testid="search-share" />;
  // More may be folded, unless there is no more.
  const isFolded = tree.header.pruned > 0;
  const atLeast = (part: number, whole: number): string => (isFolded && part < whole ? "≥ " : "");
  const inZoomed = tree.total[zoomedNode.value];
  const whole = wholeTotal.value ?? tree.rootTotal;
  return (
    <p class="search-share" role="status" data-testid="search-share">
      {pinned !== "" && (
        <span class="pin" title={pinned}>
          <span class="truncated">{pinned}</span>
          <ClearButton label="Let go of this function" onClick={() => update({ pinned: "" })} />
        </span>
      )}
      {pinned !== "" && sourceSteps.isAvailable && view.value.panes !== "source" && (
        <button type="button" class="link-button" title="Its source with the cost of each line (o)" onClick={() => openSource(pinned)}>
          source
        </button>
      )}
      <strong title={isFolded ? "More may be among the small nodes folded into “other”." : undefined}>
        {atLeast(found.total, tree.rootTotal)}
        {formatShare(found.total, whole)}
      </strong>
      <span class="muted">
        {wholeTotal.value === undefined ? "of shown" : "of all"}
        {inView !== undefined && `, ${atLeast(inView, inZoomed)}${formatShare(inView, inZoomed)} of view`} in{" "}
        {formatInteger(found.nodes.length)} {found.nodes.length === 1 ? "place" : "places"}
      </span>
      {found.nodes.length > 0 && (
        <button
          type="button"
          class="link-button"
          title="Zoom to the heaviest (n, N step through all)"
          onClick={zoomToHighlight}
        >
          go to heaviest
        </button>
      )}
      {found.nodes.length === 0 && isFolded && hasServer && (
        <button type="button" class="link-button" title="Asks for every node, and focuses on the heaviest place that is found" onClick={zoomToHighlight}>
          look among what is folded
        </button>
      )}
    </p>
  );
}

function ClearButton({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <button type="button" class="clear-button" aria-label={label} title={label} onClick={onClick}>
      <CloseIcon />
    </button>
  );
}

/** Where we are: the path to the zoomed node, its last steps in full. */
export function Breadcrumb() {
  const tree = flameTree.value;
  const node = zoomedNode.value;
  if (!tree || tree.isEmpty) return null;
  if (isZoomLost.value) {
    return (
      <nav class="breadcrumb" aria-label="Zoom">
        <span class="muted" role="status">
          The zoomed frame is not in this range.
        </span>
        <button type="button" class="link-button" onClick={() => update({ zoom: "" })}>
          Stay at {tree.nameOf(ROOT)}
        </button>
      </nav>
    );
  }
  if (node === ROOT) return null;
  const path = tree.pathTo(node);
  const shown = path.slice(-4);
  const hidden = path.slice(1, -4);
  return (
    <nav class="breadcrumb" aria-label="Zoom">
      <button type="button" class="link-button" onClick={() => zoomTo(ROOT)}>
        {tree.nameOf(ROOT)}
      </button>
      {hidden.length > 0 && <span class="muted">› {hidden.length} more</span>}
      {shown
        .filter((step) => step !== ROOT)
        .map((step) => (
          <span key={step} class="crumb">
            <span class="muted">›</span>
            <button
              type="button"
              class="link-button"
              aria-current={step === node ? "location" : undefined}
              title={tree.nameOf(step)}
              onClick={() => zoomTo(step)}
            >
              {tree.frames.shortName(tree.frame[step])}
            </button>
          </span>
        ))}
      <span class="muted hint">Esc goes up</span>
    </nav>
  );
}
