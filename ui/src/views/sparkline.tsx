// At most forty buckets in the width of a word. Scaled to its own maximum: shape, not size; the size stands beside it.

const WIDTH = 64;
const HEIGHT = 18;

export function Sparkline({ values, color }: { values: readonly number[]; color: string }) {
  const maximum = Math.max(...values, 0);
  if (values.length === 0 || maximum === 0)
    return <svg class="sparkline" width={WIDTH} height={HEIGHT} aria-hidden="true" />;
  const stepWidth = WIDTH / values.length;
  const top = (value: number): string => (HEIGHT - 1 - (value / maximum) * (HEIGHT - 2)).toFixed(1);
  const outline = values
    .map(
      (value, index) =>
        `${(index * stepWidth).toFixed(1)},${top(value)} ${((index + 1) * stepWidth).toFixed(1)},${top(value)}`,
    )
    .join(" ");
  return (
    <svg class="sparkline" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      <polygon points={`0,${HEIGHT} ${outline} ${WIDTH},${HEIGHT}`} fill={color} fill-opacity="0.22" />
      <polyline points={outline} fill="none" stroke={color} stroke-width="1" />
    </svg>
  );
}
