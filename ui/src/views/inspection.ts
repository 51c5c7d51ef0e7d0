// What end-to-end tests and benchmarks read from outside: `window.__candela` and `window.__perf`.

import type { EnginePerf } from "../engine/perf.ts";
import type { VisibleChartBox } from "../engine/chart-view.ts";
import { chartView, flameView } from "./actions.ts";
import { perf } from "./highlight.ts";
import { flameTree } from "./store.ts";

export interface FlameInspection {
  nodes: number;
  total: number;
  unit: string;
  /** Sampled events; null where the server does not say. */
  samples: number | null;
  /** Boxes on the screen, in CSS pixels from the corner of the canvas. */
  visible: { name: string; x: number; y: number; w: number; h: number; total: number }[];
}

declare global {
  interface Window {
    __candela?: { flamegraph: () => FlameInspection; chart: () => VisibleChartBox[] };
    __perf?: EnginePerf;
  }
}

export function exposeToTests(): void {
  window.__perf = perf;
  window.__candela = {
    chart: () => chartView.current?.visibleBoxes() ?? [],
    flamegraph: () => {
      const tree = flameTree.peek();
      return {
        nodes: tree?.length ?? 0,
        total: tree?.rootTotal ?? 0,
        unit: tree?.header.unit ?? "",
        samples: tree?.header.samples ?? null,
        visible: (flameView.current?.visibleBoxes() ?? []).map(({ name, x, y, w, h, total }) => ({
          name,
          x,
          y,
          w,
          h,
          total,
        })),
      };
    },
  };
}
