// The page of one file: the flame graph and the table of the window, without what needs a server.

import { useEffect, useLayoutEffect } from "preact/hooks";
import { ROOT } from "../model/flame-tree.ts";
import { typeTitle } from "../model/profile-type.ts";
import { describeSpan, formatClock } from "../model/time-range.ts";
import { formatCount, formatValue } from "../model/units.ts";
import type { PaneChoice } from "../state/schema.ts";
import { FlamePane } from "../views/flame-pane.tsx";
import { Breadcrumb, FlameToolbar } from "../views/flame-toolbar.tsx";
import { FrameMenu } from "../views/frame-menu.tsx";
import { globalKeys, handleGlobalKey } from "../views/global-keys.ts";
import { Mark, MoonIcon, SunIcon } from "../views/icons.tsx";
import { notice } from "../views/notice.ts";
import { TreePane } from "../views/profile/tree-pane.tsx";
import { FrameStatus } from "../views/frame-status.tsx";
import { currentType, flameTree, types, update, view } from "../views/store.ts";
import { isDark, toggleTheme } from "../views/theme.ts";
import { TopTable } from "../views/top-table.tsx";
import { BothTotals, ChangeLegend, LookChooser } from "../views/compare/compared-legend.tsx";
import { comparedNode } from "../views/compare/compared-node.tsx";
import { ComparedTable } from "../views/compare/compared-table.tsx";

const PROFILE_LAYOUTS: readonly PaneChoice[] = ["flame", "both", "table", "tree"];
const COMPARISON_LAYOUTS: readonly PaneChoice[] = ["flame", "both", "table"];
const WITH_FLAME: ReadonlySet<PaneChoice> = new Set(["flame", "both"]);
const WITH_TABLE: ReadonlySet<PaneChoice> = new Set(["table", "both"]);

interface OfflineAppProps {
  title: string;
  /** The page holds two profiles side by side. */
  isComparison: boolean;
}

export function OfflineApp({ title, isComparison }: OfflineAppProps) {
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent): void => handleGlobalKey(event, globalKeys);
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  useEffect(() => {
    document.title = title;
  }, [title]);
  const layouts = isComparison ? COMPARISON_LAYOUTS : PROFILE_LAYOUTS;
  // A link of the window may name one that needs a server.
  const panes = layouts.find((layout) => layout === view.value.panes) ?? "both";
  return (
    <>
      <header class="header is-file">
        <span class="brand" title={title}>
          <Mark />
          <span class="truncated">{title}</span>
        </span>
        <Types />
        {isComparison ? <BothTotals /> : <Whole />}
        <div class="header-end">
          <button
            type="button"
            class="icon-button"
            title={isDark.value ? "Light theme" : "Dark theme"}
            aria-label={isDark.value ? "Switch to the light theme" : "Switch to the dark theme"}
            onClick={toggleTheme}
          >
            {isDark.value ? <SunIcon /> : <MoonIcon />}
          </button>
        </div>
      </header>
      <div class="body">
        <main class="main">
          <section class="profile" aria-label="Profile">
            <FlameToolbar
              coloring={isComparison ? <LookChooser /> : undefined}
              layouts={layouts}
            />
            {isComparison && <ChangeLegend />}
            <Breadcrumb />
            <div class={`panes is-${panes}`}>
              {panes === "tree" && <TreePane />}
              {WITH_FLAME.has(panes) && <FlamePane description={isComparison ? comparedNode : undefined} />}
              {WITH_TABLE.has(panes) && (isComparison ? <ComparedTable /> : <TopTable />)}
            </div>
          </section>
        </main>
      </div>
      <footer class="status-bar">
        <FrameStatus figures={isComparison ? comparedNode.figures : undefined} />
        <Folded />
      </footer>
      <FrameMenu />
      <p class={`toast${notice.value === "" ? "" : " is-shown"}`} role="status">
        {notice.value}
      </p>
    </>
  );
}

function Types() {
  const known = types.value.data ?? [];
  if (known.length < 2) return <strong class="truncated">{known.map(typeTitle).join("")}</strong>;
  return (
    <label class="inline-field">
      <select
        aria-label="Profile type"
        data-testid="type-chooser"
        value={currentType.value?.id ?? ""}
        onChange={(event) => update({ type: event.currentTarget.value, zoom: "" })}
      >
        {known.map((type) => (
          <option key={type.id} value={type.id}>
            {typeTitle(type)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** What all of it is, and when. */
function Whole() {
  const tree = flameTree.value;
  if (!tree || tree.isEmpty) return null;
  const { from, to, unit } = tree.header;
  const span = to > from ? describeSpan({ from, to }) : formatClock(from, { date: true });
  const when = from > 0 ? ` · ${span}` : "";
  return (
    <span class="muted truncated header-rest" data-testid="whole">
      {formatValue(tree.total[ROOT], unit)}
      {when}
    </span>
  );
}

function Folded() {
  const pruned = flameTree.value?.header.pruned ?? 0;
  if (pruned === 0) return null;
  return (
    <span class="muted" title="The totals hold them.">
      {formatCount(pruned)} small nodes folded into “other”
    </span>
  );
}
