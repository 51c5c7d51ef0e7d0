// Times as the API takes them: `now`, `now-1h`, unix seconds or milliseconds, RFC 3339. Relative ends stay relative in the view
// state and are resolved once a refresh, so that all panes of one picture ask for the same range.

export interface TimeRange {
  /** Unix milliseconds. */
  from: number;
  to: number;
}

export interface RangePreset {
  from: string;
  label: string;
  short: string;
}

export const PRESETS: readonly RangePreset[] = [
  { from: "now-5m", label: "Last 5 minutes", short: "5 min" },
  { from: "now-15m", label: "Last 15 minutes", short: "15 min" },
  { from: "now-1h", label: "Last hour", short: "1 h" },
  { from: "now-3h", label: "Last 3 hours", short: "3 h" },
  { from: "now-12h", label: "Last 12 hours", short: "12 h" },
  { from: "now-1d", label: "Last 24 hours", short: "24 h" },
  { from: "now-7d", label: "Last 7 days", short: "7 d" },
];

const UNIT_MILLISECONDS: Record<string, number> = { ms: 1, s: 1e3, m: 60e3, h: 3600e3, d: 86400e3, w: 7 * 86400e3 };

/** Numbers from here on are milliseconds, below it seconds: 1e11 seconds is the year 5138, 1e11 milliseconds is 1973. */
const MILLISECONDS_FROM = 1e11;

/** Unix milliseconds, or `undefined` when the text is no time. */
export function resolveTime(text: string, nowMilliseconds: number): number | undefined {
  const trimmed = text.trim();
  const relative = /^now(?:-(\d+(?:\.\d+)?)(ms|s|m|h|d|w))?$/.exec(trimmed);
  if (relative) return nowMilliseconds - Number(relative[1] ?? 0) * (UNIT_MILLISECONDS[relative[2] ?? "s"] ?? 0);
  if (/^\d+(\.\d+)?$/.test(trimmed)) {
    const number = Number(trimmed);
    return Math.round(number >= MILLISECONDS_FROM ? number : number * 1e3);
  }
  const parsed = /^\d{4}-/.test(trimmed) ? Date.parse(trimmed) : Number.NaN;
  return Number.isNaN(parsed) ? undefined : parsed;
}

export function isRelative(text: string): boolean {
  return text.trim().startsWith("now");
}

const pad = (value: number): string => String(value).padStart(2, "0");

/** `14:03:07` in the reader's time zone; with the date when asked. */
export function formatClock(milliseconds: number, options: { date?: boolean; seconds?: boolean } = {}): string {
  const at = new Date(milliseconds);
  const time = `${pad(at.getHours())}:${pad(at.getMinutes())}${options.seconds === false ? "" : `:${pad(at.getSeconds())}`}`;
  if (!options.date) return time;
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${time}`;
}

/** `Last hour`, or `2026-11-21 10:00:00 – 11:00:00`, with the second date only where it differs. */
export function describeRange(from: string, to: string, resolved: TimeRange): string {
  const preset = to === "now" ? PRESETS.find((candidate) => candidate.from === from) : undefined;
  if (preset) return preset.label;
  if (isRelative(from) && to === "now") return `Last ${from.slice("now-".length)}`;
  const sameDay = new Date(resolved.from).toDateString() === new Date(resolved.to).toDateString();
  return `${formatClock(resolved.from, { date: true })} – ${formatClock(resolved.to, { date: !sameDay })}`;
}

const STEP_CHOICES_SECONDS = [20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400];
/** The agent sends one profile a little more than every 10 s: a step of less than two of them would show holes and spikes. */
const MAXIMUM_POINTS = 400;

/** Seconds a point of the series stands for. */
export function seriesStep(range: TimeRange): number {
  const seconds = Math.max(1, (range.to - range.from) / 1e3);
  return STEP_CHOICES_SECONDS.find((step) => seconds / step <= MAXIMUM_POINTS) ?? Math.ceil(seconds / MAXIMUM_POINTS);
}
