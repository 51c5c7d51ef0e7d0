// Values as a reader says them: durations, binary sizes, counts, shares. Three significant digits, never more than is known.

const NANOSECONDS_PER_SECOND = 1e9;

/** A value in its native unit: `1.23 s`, `4 min 12 s`, `3.4 MiB`, `12.3 k`. */
export function formatValue(value: number, unit: string): string {
  switch (unit) {
    case "nanoseconds":
      return formatNanoseconds(value);
    case "bytes":
      return formatBytes(value);
    default:
      return formatCount(value);
  }
}

/** What is spent a second, in the words of its unit: nanoseconds of CPU are cores. */
export function formatRate(perSecond: number, unit: string, isCpu: boolean): string {
  switch (unit) {
    case "nanoseconds":
      return isCpu
        ? formatCores(perSecond / NANOSECONDS_PER_SECOND)
        : `${significant(perSecond / NANOSECONDS_PER_SECOND)} s/s`;
    case "bytes":
      return `${formatBytes(perSecond)}/s`;
    default:
      return `${formatCount(perSecond)}/s`;
  }
}

export function formatCores(cores: number): string {
  if (cores === 0) return "0 cores";
  if (cores < 0.001) return "<0.001 cores";
  const digits = cores >= 100 ? 0 : cores >= 10 ? 1 : cores >= 0.1 ? 2 : 3;
  return `${cores.toFixed(digits)} cores`;
}

export function formatNanoseconds(nanoseconds: number): string {
  const size = Math.abs(nanoseconds);
  if (size === 0) return "0 s";
  if (size < 1e3) return `${significant(nanoseconds)} ns`;
  if (size < 1e6) return `${significant(nanoseconds / 1e3)} µs`;
  if (size < 999.5e6) return `${significant(nanoseconds / 1e6)} ms`;
  if (size < 59.95e9) return `${significant(nanoseconds / NANOSECONDS_PER_SECOND)} s`;
  return formatLongDuration(Math.round(nanoseconds / NANOSECONDS_PER_SECOND));
}

/** Whole seconds from a minute on: `4 min 12 s`, `3 h 20 min`, `2 d 4 h`. */
function formatLongDuration(seconds: number): string {
  const sign = seconds < 0 ? "−" : "";
  const size = Math.abs(seconds);
  const pair = (major: number, majorUnit: string, minor: number, minorUnit: string): string =>
    `${sign}${major} ${majorUnit}${minor > 0 ? ` ${minor} ${minorUnit}` : ""}`;
  if (size < 3600) return pair(Math.floor(size / 60), "min", size % 60, "s");
  if (size < 48 * 3600) return pair(Math.floor(size / 3600), "h", Math.floor((size % 3600) / 60), "min");
  return pair(Math.floor(size / 86400), "d", Math.floor((size % 86400) / 3600), "h");
}

export function formatSeconds(seconds: number): string {
  return formatNanoseconds(seconds * NANOSECONDS_PER_SECOND);
}

const BINARY_PREFIXES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const DECIMAL_PREFIXES = ["", "k", "M", "G", "T"];

export function formatBytes(bytes: number): string {
  const step = prefixStep(Math.abs(bytes), 1024, BINARY_PREFIXES.length);
  return `${step === 0 ? Math.round(bytes) : significant(bytes / 1024 ** step)} ${BINARY_PREFIXES[step]}`;
}

export function formatCount(count: number): string {
  const step = prefixStep(Math.abs(count), 1000, DECIMAL_PREFIXES.length);
  if (step === 0) return Number.isInteger(count) ? String(count) : significant(count);
  return `${significant(count / 1000 ** step)} ${DECIMAL_PREFIXES[step]}`;
}

/** Every digit, in groups: for counts of things a reader could count. */
export function formatInteger(count: number): string {
  return count.toLocaleString("en-US");
}

/** The prefix whose rounded value stays below the next one: 999.9 KiB is 1000 KiB, not 1e3. */
function prefixStep(size: number, base: number, prefixes: number): number {
  let step = 0;
  while (step < prefixes - 1 && size / base ** step >= base - 0.5) step++;
  return step;
}

/** Three significant digits without an exponent: 1.23, 12.3, 123, 1023. */
function significant(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  if (size >= 0.9995) return value.toFixed(2);
  return value.toPrecision(2);
}

/** A part of a whole: `23.4 %`, `0.04 %`, `<0.01 %`. An empty whole has no shares. */
export function formatShare(part: number, whole: number): string {
  if (!(whole > 0)) return "–";
  const percent = (100 * part) / whole;
  if (percent !== 0 && Math.abs(percent) < 0.01) return "<0.01 %";
  if (Math.abs(percent) >= 99.95) return `${percent.toFixed(0)} %`;
  return `${percent.toFixed(Math.abs(percent) < 1 ? 2 : 1)} %`;
}

/** `+12 %`, `−3.1 %`, `×4.2`: beyond a doubling a factor reads better than a percentage. */
export function formatChange(now: number, before: number): string {
  if (!(before > 0)) return now > 0 ? "new" : "–";
  const ratio = now / before;
  if (ratio >= 3) return `×${ratio >= 10 ? ratio.toFixed(0) : ratio.toFixed(1)}`;
  const percent = (ratio - 1) * 100;
  const digits = Math.abs(percent) < 10 ? 1 : 0;
  const rounded = Math.abs(percent).toFixed(digits);
  if (Number(rounded) === 0) return "±0 %";
  return `${percent > 0 ? "+" : "−"}${rounded} %`;
}
