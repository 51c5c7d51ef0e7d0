// Which colour is which kind of code, of the kinds that are in the picture.

import { computed } from "@preact/signals";
import { kindHue } from "../engine/colors.ts";
import { flameTree, view } from "./store.ts";
import { flameTheme } from "./theme.ts";

const TITLES: Record<string, string> = {
  jvm: "Java",
  cpython: "Python",
  v8js: "JavaScript",
  dotnet: ".NET",
  go: "Go",
  rust: "Rust",
  beam: "Erlang",
  php: "PHP",
};

const kinds = computed(() => {
  const frames = flameTree.value?.frames;
  if (!frames) return [];
  const found = new Set(Array.from({ length: frames.length }, (_, frame) => frames.kind(frame)));
  return [...found].filter((kind) => kind !== "" && kind !== "other").toSorted();
});

export function KindLegend() {
  if (view.value.colorBy !== "kind") return null;
  const theme = flameTheme.value;
  const colorOf = (kind: string): string =>
    kind === "kernel" ? theme.kernel[0] : theme.hues[2 * kindHue(kind, theme.hues.length / 2)];
  return (
    <p class="kind-legend" aria-label="Colours by kind of code">
      {kinds.value.map((kind) => (
        <span key={kind} class="legend-entry">
          <span class="swatch" style={{ background: colorOf(kind) }} aria-hidden="true" />
          {TITLES[kind] ?? kind}
        </span>
      ))}
    </p>
  );
}
