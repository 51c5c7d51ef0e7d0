// The one page: header, services on the left, on the right the series above flame graph and table, a status line below.

import { useEffect, useLayoutEffect } from "preact/hooks";
import { copyCommand, copyLink, stepHighlight } from "./actions.ts";
import { Notices } from "./empty-state.tsx";
import { letGo } from "./flame-keys.ts";
import { FlamePane } from "./flame-pane.tsx";
import { Breadcrumb, FlameToolbar, SEARCH_INPUT_ID } from "./flame-toolbar.tsx";
import { FrameMenu } from "./frame-menu.tsx";
import { Header } from "./header.tsx";
import { Headline } from "./headline.tsx";
import { notice } from "./notice.ts";
import { Help, isHelpOpen } from "./help.tsx";
import { SeriesChart } from "./series-chart.tsx";
import { Services } from "./services.tsx";
import { StatusBar } from "./status-bar.tsx";
import { isStale, refresh, service, update, view } from "./store.ts";
import { toggleTheme } from "./theme.ts";
import { TopTable } from "./top-table.tsx";

export function App() {
  useLayoutEffect(() => {
    document.addEventListener("keydown", handleGlobalKey);
    return () => document.removeEventListener("keydown", handleGlobalKey);
  }, []);
  useEffect(() => {
    document.title = service.value === undefined ? "Candela" : `${service.value} · Candela`;
  }, [service.value]);

  const { panes } = view.value;
  const stale = isStale.value ? " is-stale" : "";
  return (
    <>
      <Header />
      <div class="body">
        <Services />
        <main class="main">
          <Notices />
          <section class={`overview${stale}`} aria-label="Cost over time">
            <Headline />
            <SeriesChart />
          </section>
          <section class={`profile${stale}`} aria-label="Profile" aria-busy={isStale.value}>
            <FlameToolbar />
            <Breadcrumb />
            <div class={`panes is-${panes}`}>
              {panes !== "table" && <FlamePane />}
              {panes !== "flame" && <TopTable />}
            </div>
          </section>
        </main>
      </div>
      <StatusBar />
      <Help />
      <FrameMenu />
      <p class={`toast${notice.value === "" ? "" : " is-shown"}`} role="status">
        {notice.value}
      </p>
    </>
  );
}

function handleGlobalKey(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
  // Escape closes an open dialog, and only that.
  if (isHelpOpen.peek() && event.key !== "?") return;
  const actions: Record<string, () => void> = {
    "/": () => {
      const input = document.getElementById(SEARCH_INPUT_ID) as HTMLInputElement | null;
      input?.focus();
      input?.select();
    },
    "?": () => (isHelpOpen.value = !isHelpOpen.peek()),
    y: copyLink,
    Y: copyCommand,
    t: toggleTheme,
    n: () => stepHighlight(1),
    N: () => stepHighlight(-1),
    Escape: letGo,
    r: refresh,
    l: () => update({ live: !view.peek().live }),
  };
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(input|textarea|select)$/i.test(target.tagName))
  );
}
