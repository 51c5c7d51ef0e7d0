// The colours of a change, out of the tokens of the page.

import { computed } from "@preact/signals";
import type { NodeColors } from "../../engine/colors.ts";
import { CHANGE_LEVELS, changeLevel, presence } from "../../model/change.ts";
import { changeColorsChoice, flameTheme, tokenReader } from "../theme.ts";
import { compared } from "./compared.ts";

/** From what shrank most to what grew most. */
export const LEVELS = Array.from({ length: 2 * CHANGE_LEVELS + 1 }, (_, index) => index - CHANGE_LEVELS);

export function levelToken(level: number): string {
  if (level === 0) return "--change-none";
  return level > 0 ? `--grew-${level}` : `--shrank-${-level}`;
}

const palette = computed(() => {
  // Changes whenever tokens do.
  void flameTheme.value;
  void changeColorsChoice.value;
  const { color } = tokenReader();
  return {
    fills: LEVELS.map((level) => color(levelToken(level))),
    hatch: color("--change-hatch"),
    edges: { new: color("--only-after"), gone: color("--only-before"), both: undefined },
  };
});

/**
 * The fill tells how the own value changed, or all callers of a slower function would be as red as itself; the edge, that one side
 * lacks the node.
 */
export const changeColors = computed<NodeColors | undefined>(() => {
  const shown = compared.value;
  if (!shown) return undefined;
  const { before, after, largestChange, chance } = shown;
  const { fills, edges, hatch } = palette.value;
  const levelOf = (node: number): number => changeLevel(before.self[node], after.self[node], largestChange);
  return {
    // What has not changed needs no doubt: lines over every grey box would hide the few that matter.
    ...(chance && { hatching: (node: number) => chance.isUncertain[node] === 1 && levelOf(node) !== 0, hatchColor: hatch }),
    fill: (node) => fills[CHANGE_LEVELS + levelOf(node)],
    edge: (node) => edges[presence(before.total[node], after.total[node])],
  };
});
