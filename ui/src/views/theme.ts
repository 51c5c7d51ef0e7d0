// Light or dark: the system's choice until the reader makes one, which is remembered.

import { computed, effect, signal } from "@preact/signals";
import type { FlameTheme } from "../engine/colors.ts";

export type ThemeChoice = "system" | "light" | "dark";

/** Of what grew and what shrank; the first by default. */
export const CHANGE_COLORS = ["blue-orange", "red-green"] as const;
export type ChangeColors = (typeof CHANGE_COLORS)[number];

const STORAGE_KEY = "candela.theme";
const CHANGE_COLORS_KEY = "candela.change-colors";
const HUE_COUNT = 12;

export const themeChoice = signal<ThemeChoice>(remembered(STORAGE_KEY, ["light", "dark"]) ?? "system");
/** Not in the address: who gets a link may see other colours apart. */
export const changeColorsChoice = signal<ChangeColors>(remembered(CHANGE_COLORS_KEY, CHANGE_COLORS) ?? CHANGE_COLORS[0]);

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

function remembered<T extends string>(key: string, choices: readonly T[]): T | undefined {
  try {
    const text = localStorage.getItem(key);
    return choices.find((choice) => choice === text);
  } catch {
    // Storage may be forbidden; the choice then lasts as long as the page.
    return undefined;
  }
}

function remember(key: string, choice: string): void {
  try {
    localStorage.setItem(key, choice);
  } catch {
    // As above.
  }
}

export function toggleTheme(): void {
  themeChoice.value = isDark.peek() ? "light" : "dark";
  remember(STORAGE_KEY, themeChoice.peek());
}

export function chooseChangeColors(choice: ChangeColors): void {
  changeColorsChoice.value = choice;
  remember(CHANGE_COLORS_KEY, choice);
}

effect(() => {
  const root = document.documentElement;
  if (themeChoice.value === "system") delete root.dataset.theme;
  else root.dataset.theme = themeChoice.value;
});

effect(() => {
  document.documentElement.dataset.changeColors = changeColorsChoice.value;
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
    mark: color("--accent-soft"),
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
