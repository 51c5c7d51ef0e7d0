// The one page: header, services on the left, on the right the series above flame graph and table, a status line below.

import { useEffect, useLayoutEffect } from "preact/hooks";
import { copyCommand, copyLink } from "./actions.ts";
import { Notices } from "./empty-state.tsx";
import { FlamePane } from "./flame-pane.tsx";
import { Breadcrumb, FlameToolbar } from "./flame-toolbar.tsx";
import { FrameMenu } from "./frame-menu.tsx";
import { globalKeys, handleGlobalKey, type KeyActions } from "./global-keys.ts";
import { Header } from "./header.tsx";
import { Headline } from "./headline.tsx";
import { notice } from "./notice.ts";
import { Help, isHelpOpen } from "./help.tsx";
import { SeriesChart } from "./series-chart.tsx";
import { Services } from "./services.tsx";
import { StatusBar } from "./status-bar.tsx";
import { isStale, refresh, service, update, view } from "./store.ts";
import { TopTable } from "./top-table.tsx";

export function App() {
  useLayoutEffect(() => {
    document.addEventListener("keydown", handleKey);
    return () => document.removeEventListener("keydown", handleKey);
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

const keys: KeyActions = {
  ...globalKeys,
  "?": () => (isHelpOpen.value = !isHelpOpen.peek()),
  y: copyLink,
  Y: copyCommand,
  r: refresh,
  l: () => update({ live: !view.peek().live }),
};

function handleKey(event: KeyboardEvent): void {
  // Escape closes an open dialog, and only that.
  if (isHelpOpen.peek() && event.key !== "?") return;
  handleGlobalKey(event, keys);
}
