// The answer in one figure: what is looked at, what it costs, over what time, from how many samples.

import { isCpuTime, isGauge, parseTypeId, typeTitle } from "../model/profile-type.ts";
import { formatCount, formatRate, formatSeconds, formatValue } from "../model/units.ts";
import { DownloadIcon } from "./icons.tsx";
import { api, currentType, flame, observedSeconds, range, service, view } from "./store.ts";

export function Headline() {
  const tree = flame.value.data;
  const seconds = observedSeconds.value;
  const rangeSeconds = (range.value.to - range.value.from) / 1e3;
  const unit = tree?.header.unit ?? "";
  const type = tree?.header.type ?? "";
  const hasData = tree !== undefined && !tree.isEmpty;
  return (
    <div class="headline">
      <h1 class="truncated" title={service.value ?? "All services"}>
        {service.value ?? "All services"}
      </h1>
      <p class="figure">
        {hasData
          ? splitFigure(
              isGauge(type)
                ? formatValue(tree.rootTotal, unit)
                : formatRate(tree.rootTotal, unit, seconds, isCpuTime(type)),
            )
          : "–"}
      </p>
      <p class="muted">
        {typeTitle(currentType.value ?? parseTypeId(view.value.type))}
        {hasData && !isGauge(type) && ` · ${formatValue(tree.rootTotal, unit)}`}
      </p>
      <p class="muted">
        {hasData && `${formatCount(tree.header.samples)} samples in ${formatSeconds(seconds)}`}
        {hasData && seconds < rangeSeconds * 0.97 && (
          <span title="The rest of the range has no data: nothing was recorded yet.">
            {" "}
            of {formatSeconds(rangeSeconds)}
          </span>
        )}
        {hasData && (
          <a
            class="icon-link"
            href={api.pprofUrl({ query: view.value.query, type: view.value.type, range: range.value })}
            download="candela.pb.gz"
            title="Download as pprof"
          >
            <DownloadIcon />
            <span class="visually-hidden">Download as pprof</span>
          </a>
        )}
      </p>
    </div>
  );
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
