// Series on one time axis, the heaviest first, the rest summed, stacked for drawing.

/** The answer of `/api/v1/series`. */
export interface SeriesAnswer {
  type: string;
  unit: string;
  step_ms: number;
  series: { labels: Record<string, string>; points: [number, number][] }[];
}

export interface StackedSeries {
  /** Unix seconds, as the chart wants them. */
  times: number[];
  /** From the bottom of the stack to its top; `own` is the layer's value, `stacked` the sum with all below. */
  layers: { name: string; own: (number | null)[]; stacked: (number | null)[] }[];
  stepSeconds: number;
}

export const OTHER_LAYER = "other services";

export function stackSeries(answer: SeriesAnswer, nameLabel: string, maximumLayers: number): StackedSeries {
  const stepSeconds = answer.step_ms / 1e3;
  const times = [...new Set(answer.series.flatMap(({ points }) => points.map(([time]) => time)))].toSorted(
    (left, right) => left - right,
  );
  const positions = new Map(times.map((time, position) => [time, position]));

  const dense = answer.series.map(({ labels, points }) => {
    const own: (number | null)[] = Array.from({ length: times.length }, () => null);
    let sum = 0;
    for (const [time, value] of points) {
      own[positions.get(time) ?? 0] = value;
      sum += value;
    }
    return { name: labels[nameLabel] ?? "", own, sum };
  });
  dense.sort((left, right) => right.sum - left.sum);

  const shown = dense.slice(0, maximumLayers);
  const rest = dense.slice(maximumLayers);
  if (rest.length > 0) {
    const own = times.map((_, position) => addAll(rest.map((series) => series.own[position])));
    shown.push({ name: OTHER_LAYER, own, sum: 0 });
  }

  const below = Array.from({ length: times.length }, () => 0);
  const layers = shown.map(({ name, own }) => ({
    name,
    own,
    stacked: own.map((value, position) => {
      below[position] += value ?? 0;
      return shown.length === 1 && value === null ? null : below[position];
    }),
  }));
  return { times: times.map((time) => time / 1e3), layers, stepSeconds };
}

function addAll(values: readonly (number | null)[]): number | null {
  const present = values.filter((value) => value !== null);
  return present.length === 0 ? null : present.reduce((sum, value) => sum + value, 0);
}
