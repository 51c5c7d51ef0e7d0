// Which colours the picture has: the reader's choice where it means something for this profile, else what fits the type best.

import { computed } from "@preact/signals";
import { parseTypeId } from "../model/profile-type.ts";
import { hasReasons } from "../model/wait-reasons.ts";
import { COLOR_CHOICES, type ColorBy } from "../state/schema.ts";
import { currentType, flameTree, view } from "./store.ts";

const isWaiting = computed(() => {
  const type = currentType.value ?? parseTypeId(flameTree.value?.header.type ?? view.value.type);
  return hasReasons(type);
});

/** What can be chosen. */
export const colorings = computed<readonly ColorBy[]>(() =>
  COLOR_CHOICES.filter((choice) => choice !== "auto" && (choice !== "reason" || isWaiting.value)),
);

export const coloring = computed<ColorBy>(() => {
  const { colorBy } = view.value;
  if (colorBy === "auto") return isWaiting.value ? "reason" : "package";
  return colorBy === "reason" && !isWaiting.value ? "package" : colorBy;
});
