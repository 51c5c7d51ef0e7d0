// The answer in one figure: what is looked at, what it costs, over what time, from how many samples.

import { formatCost, profiledSeconds } from "../model/cost.ts";
import type { FlameTree } from "../model/flame-tree.ts";
import { isCpuTime, isGauge, parseTypeId, typeTitle } from "../model/profile-type.ts";
import { formatCount, formatSeconds, formatValue } from "../model/units.ts";
import { currentType, flame, flameTree, selectionTitle, service, view } from "./store.ts";

const NEARLY_WHOLE = 0.97;

export function Headline() {
  const { isStale } = flame.value;
  // Figures of what was asked before have no place below this heading.
  const tree = isStale ? undefined : flameTree.value;
  const title = selectionTitle.value;
  return (
    <div class="headline">
      <h1 class="truncated" title={service.value ?? view.value.query}>
        {title}
      </h1>
      {tree === undefined || tree.isEmpty ? <NoFigures /> : <Figures tree={tree} />}
    </div>
  );
}

function NoFigures() {
  return (
    <>
      <p class="figure">–</p>
      <p class="muted">{typeTitle(currentType.value ?? parseTypeId(view.value.type))}</p>
    </>
  );
}

function Figures({ tree }: { tree: FlameTree }) {
  const { unit, type, samples, from, to } = tree.header;
  const seconds = profiledSeconds(tree.header);
  const rangeSeconds = (to - from) / 1e3;
  return (
    <>
      <p class="figure" title={isWaiting(tree) ? "Seconds in each second: so many threads at a time, on average" : undefined}>
        {splitFigure(formatCost(tree.rootTotal, tree.header, seconds))}
      </p>
      <p class="muted">
        {typeTitle(currentType.value ?? parseTypeId(view.value.type))}
        {!isGauge(type) && seconds !== undefined && ` · ${formatValue(tree.rootTotal, unit)}`}
      </p>
      <p class="muted">
        {samples !== null && samples !== undefined && `${formatCount(samples)} samples in `}
        {seconds === undefined ? `a range of ${formatSeconds(rangeSeconds)}` : formatSeconds(seconds)}
        {seconds !== undefined && seconds < rangeSeconds * NEARLY_WHOLE && (
          <span title="What its profiles cover. The rest of the range was not profiled, or is still on its way.">
            {" "}
            of {formatSeconds(rangeSeconds)}
          </span>
        )}
      </p>
    </>
  );
}

function isWaiting({ header }: FlameTree): boolean {
  return header.unit === "nanoseconds" && !isCpuTime(header.type);
}

/** The number large, its unit beside it. */
function splitFigure(text: string) {
  const space = text.lastIndexOf(" ");
  if (space === -1) return text;
  return (
    <>
      {text.slice(0, space)} <span class="figure-unit">{text.slice(space + 1)}</span>
    </>
  );
}
