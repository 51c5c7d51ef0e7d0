// One profile: the series and the heatmap above, the filters, and one of its views below.

import { computed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { PANE_CHOICES, type PaneChoice } from "../../state/schema.ts";
import { sourceSteps } from "../actions.ts";
import { Notices } from "../empty-state.tsx";
import { ExportMenu } from "../export-menu.tsx";
import { FlamePane } from "../flame-pane.tsx";
import { Breadcrumb, FlameToolbar } from "../flame-toolbar.tsx";
import { Headline } from "../headline.tsx";
import { KindLegend } from "../kind-legend.tsx";
import { lazyScreen } from "../lazy-screen.tsx";
import { Markers } from "../markers.tsx";
import { followNotes } from "../notes.ts";
import { SeriesChart } from "../series-chart.tsx";
import { Services } from "../services.tsx";
import { isStale, lookedAtFile, series, view } from "../store.ts";
import { TopTable } from "../top-table.tsx";
import { FilterChips } from "./filter-chips.tsx";
import { HeatmapStrip } from "./heatmap-strip.tsx";
import { MarkedRanges } from "./marked-ranges.tsx";
import { reasonDescription } from "./reason-description.tsx";
import { ReasonLegend } from "./reason-legend.tsx";
import { followReasons } from "./reason-parts.ts";

const TreePane = lazyScreen(async () => (await import("./tree-pane.tsx")).TreePane);
const ChartPane = lazyScreen(async () => (await import("./chart-pane.tsx")).ChartPane);
const SandwichPane = lazyScreen(async () => (await import("./sandwich-pane.tsx")).SandwichPane);
const SourcePane = lazyScreen(async () => (await import("./source-pane.tsx")).SourcePane);

const PANES: Record<PaneChoice, () => ComponentChildren> = {
  both: () => (
    <>
      <FlamePane description={reasonDescription} />
      <TopTable />
    </>
  ),
  flame: () => <FlamePane description={reasonDescription} />,
  table: () => <TopTable />,
  tree: () => <TreePane />,
  sandwich: () => <SandwichPane />,
  chart: () => <ChartPane />,
  source: () => <SourcePane />,
};

const FileHead = lazyScreen(async () => (await import("../files/file-head.tsx")).FileHead);

/** Most files are one profile, of which a line over time is one point. */
const hasTime = computed(() => (series.value.data?.series ?? []).some(({ points }) => points.length > 1));

export function ProfileScreen() {
  useEffect(followReasons, []);
  useEffect(followNotes, []);
  const { panes } = view.value;
  const isFile = lookedAtFile.value !== undefined;
  sourceSteps.isAvailable = true;
  const stale = isStale.value ? " is-stale" : "";
  return (
    <div class="body">
      {!isFile && <Services />}
      <main class="main">
        <Notices />
        {isFile && <FileHead />}
        {(!isFile || hasTime.value) && (
          <>
            <section class={`overview${stale}`} aria-label="Cost over time">
              <Headline />
              <SeriesChart>
                <Markers />
              </SeriesChart>
            </section>
            <HeatmapStrip />
            <MarkedRanges />
          </>
        )}
        <section class={`profile${stale}`} aria-label="Profile" aria-busy={isStale.value}>
          <FlameToolbar layouts={PANE_CHOICES} actions={<ExportMenu />} />
          <div class="filter-line">
            <FilterChips />
            <Breadcrumb />
          </div>
          <KindLegend />
          <ReasonLegend />
          <div class={`panes is-${panes}`}>{PANES[panes]()}</div>
        </section>
      </main>
    </div>
  );
}
