// Light or dark: the system's choice until the reader makes one, which is remembered.

import { computed, effect, signal } from "@preact/signals";
import type { FlameTheme } from "../engine/colors.ts";

export type ThemeChoice = "system" | "light" | "dark";

const STORAGE_KEY = "candela.theme";
const HUE_COUNT = 12;

export const themeChoice = signal<ThemeChoice>(remembered());

const darkSystem = mediaSignal("(prefers-color-scheme: dark)");
const forcedColors = mediaSignal("(forced-colors: active)");

export const isDark = computed(() =>
  themeChoice.value === "system" ? darkSystem.value : themeChoice.value === "dark",
);

function mediaSignal(query: string) {
  const media = matchMedia(query);
  const matches = signal(media.matches);
  media.addEventListener("change", () => (matches.value = media.matches));
  return matches;
}

function remembered(): ThemeChoice {
  try {
    const text = localStorage.getItem(STORAGE_KEY);
    return text === "light" || text === "dark" ? text : "system";
  } catch {
    // Storage may be forbidden; the choice then lasts as long as the page.
    return "system";
  }
}

export function toggleTheme(): void {
  themeChoice.value = isDark.peek() ? "light" : "dark";
  try {
    localStorage.setItem(STORAGE_KEY, themeChoice.peek());
  } catch {
    // As above.
  }
}

effect(() => {
  const root = document.documentElement;
  if (themeChoice.value === "system") delete root.dataset.theme;
  else root.dataset.theme = themeChoice.value;
});

/** The tokens of the flame graph, resolved for the canvas. Changes with the theme. */
export const flameTheme = computed<FlameTheme>(() => {
  void isDark.value;
  void forcedColors.value;
  const { color, font } = tokenReader();
  return {
    hues: Array.from({ length: HUE_COUNT }, (_, hue) => [color(`--frame-${hue}-a`), color(`--frame-${hue}-b`)]).flat(),
    kernel: [color("--frame-kernel-a"), color("--frame-kernel-b")],
    other: color("--frame-other"),
    root: color("--frame-root"),
    faded: color("--frame-faded"),
    matched: [color("--frame-matched-a"), color("--frame-matched-b")],
    sliver: color("--frame-sliver"),
    text: color("--frame-text"),
    textFaded: color("--frame-text-faded"),
    textMatched: color("--frame-text-matched"),
    outlineHover: color("--frame-outline-hover"),
    outlineSelected: color("--frame-outline-selected"),
    font: `11.5px ${font}`,
  };
});

export const chartTheme = computed(() => {
  void isDark.value;
  void forcedColors.value;
  const { color, font } = tokenReader();
  return {
    axis: color("--text-muted"),
    grid: color("--chart-grid"),
    layers: Array.from({ length: 6 }, (_, layer) => color(`--series-${layer}`)),
    other: color("--series-other"),
    surface: color("--surface"),
    font: `11px ${font}`,
  };
});

/** A token may hold `light-dark(…)`, which only the style of an element resolves. */
export function tokenReader(): { color: (token: string) => string; font: string } {
  const probe = document.createElement("span");
  probe.className = "token-probe";
  document.body.append(probe);
  const style = getComputedStyle(probe);
  const read = new Map<string, string>();
  const color = (token: string): string => {
    const known = read.get(token);
    if (known !== undefined) return known;
    probe.style.color = `var(${token})`;
    const value = style.color;
    read.set(token, value);
    return value;
  };
  const font = style.fontFamily;
  // Removed once the caller has read what it needs, in this same task.
  queueMicrotask(() => probe.remove());
  return { color, font };
}
