// Single profiles over time, below the series: which were busy, and not only how much all of them were. Folds away.

import { signal } from "@preact/signals";
import { lazyScreen } from "../lazy-screen.tsx";

const STORAGE_KEY = "candela.heatmap";
const isOpen = signal(remembered());
const HeatmapBody = lazyScreen(async () => (await import("./heatmap-body.tsx")).HeatmapBody);

function remembered(): boolean {
  try {
    return localStorage.getItem(STORAGE_KEY) !== "closed";
  } catch {
    // Storage may be forbidden; the choice then lasts as long as the page.
    return true;
  }
}

function toggle(): void {
  isOpen.value = !isOpen.peek();
  try {
    localStorage.setItem(STORAGE_KEY, isOpen.peek() ? "open" : "closed");
  } catch {
    // As above.
  }
}

export function HeatmapStrip() {
  return (
    <section class={`heatmap${isOpen.value ? "" : " is-closed"}`} aria-label="Heatmap of profiles" data-testid="heatmap">
      <button
        type="button"
        class="heatmap-toggle"
        aria-expanded={isOpen.value}
        data-testid="heatmap-toggle"
        title="How the values of single profiles are spread: one busy host or many calm ones have the same sum"
        onClick={toggle}
      >
        <span aria-hidden="true">{isOpen.value ? "▾" : "▸"}</span> Heatmap
      </button>
      {isOpen.value && <HeatmapBody />}
    </section>
  );
}
