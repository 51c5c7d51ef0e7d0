// Times as the API takes them: `now`, `now-1h`, unix seconds or milliseconds, RFC 3339. Relative ends stay relative in the view
// state and are resolved once a refresh, so that all panes of one picture ask for the same range.

export interface TimeRange {
  /** Unix milliseconds. */
  from: number;
  to: number;
}

interface RangePreset {
  from: string;
  label: string;
}

export const PRESETS: readonly RangePreset[] = [
  { from: "now-5m", label: "Last 5 minutes" },
  { from: "now-15m", label: "Last 15 minutes" },
  { from: "now-1h", label: "Last hour" },
  { from: "now-3h", label: "Last 3 hours" },
  { from: "now-12h", label: "Last 12 hours" },
  { from: "now-1d", label: "Last 24 hours" },
  { from: "now-7d", label: "Last 7 days" },
];

const UNIT_MILLISECONDS: Record<string, number> = {
  ms: 1,
  s: 1e3,
  m: 60e3,
  h: 3600e3,
  d: 86400e3,
  w: 7 * 86400e3,
  M: 30 * 86400e3,
  y: 365 * 86400e3,
};

/** Numbers from here on are milliseconds, below it seconds: 1e11 seconds is the year 5138, 1e11 milliseconds is 1973. */
const MILLISECONDS_FROM = 1e11;
const MILLISECONDS_END = 1e14;

/** Unix milliseconds, or `undefined` when the text is no time. The grammar is the server's (crates/server/src/time.rs). */
export function resolveTime(text: string, nowMilliseconds: number): number | undefined {
  const trimmed = text.trim();
  if (isRelative(trimmed)) return resolveRelative(trimmed.slice("now".length), nowMilliseconds);
  if (/^\d+(\.\d+)?$/.test(trimmed)) {
    const number = Number(trimmed);
    if (number >= MILLISECONDS_END) return undefined;
    return Math.round(number >= MILLISECONDS_FROM ? number : number * 1e3);
  }
  // With a zone: without one the same link would mean another time elsewhere.
  const isDated = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?([Zz]|[+-]\d{2}:\d{2})$/.test(trimmed);
  const parsed = isDated ? Date.parse(trimmed) : Number.NaN;
  return Number.isNaN(parsed) ? undefined : parsed;
}

/** What follows `now`: nothing, `-1h`, `-1h30m`, `+5m`. */
function resolveRelative(offset: string, now: number): number | undefined {
  if (offset === "") return now;
  if (!/^[+-](?:\d+(?:ms|[smhdwMy]))+$/.test(offset)) return undefined;
  const parts = [...offset.matchAll(/(\d+)(ms|[smhdwMy])/g)];
  const sum = parts.reduce((total, [, count, unit]) => total + Number(count) * (UNIT_MILLISECONDS[unit] ?? 0), 0);
  return offset.startsWith("-") ? now - sum : now + sum;
}

/** What a reader typed, as it is sent: a date without a zone is the reader's own, and so is a day, which begins at its midnight. */
export function timeParameter(typed: string): string {
  const text = typed.trim();
  const found = /^(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}(?::\d{2})?))?$/.exec(text);
  // The language reads a date alone as UTC, one with a time as local.
  const local = found ? Date.parse(`${found[1]}T${found[2] ?? "00:00"}`) : Number.NaN;
  return Number.isNaN(local) ? text : String(local);
}

/** Twice the range around the same centre, but never into the future. A range that moves with the time goes on moving. */
export function widened(from: string, to: string, shown: TimeRange, now: number): { from: string; to: string } {
  const movesWithTime = isRelative(from) && isRelative(to);
  const width = shown.to - shown.from;
  const ahead = movesWithTime ? (resolveTime(to, now) ?? now) - now : shown.to - now;
  const end = Math.min(Math.max(0, ahead), ahead + width / 2);
  if (movesWithTime) return { from: relativeTime(end - 2 * width), to: relativeTime(end) };
  return { from: String(Math.round(now + end - 2 * width)), to: String(Math.round(now + end)) };
}

/** `now-2h` for two hours ago: the largest unit without a remainder, to the second. */
function relativeTime(offset: number): string {
  const seconds = Math.round(Math.abs(offset) / 1e3);
  if (seconds === 0) return "now";
  const units = ["d", "h", "m"] as const;
  const unit = units.find((name) => (seconds * 1e3) % UNIT_MILLISECONDS[name] === 0) ?? "s";
  return `now${offset < 0 ? "-" : "+"}${(seconds * 1e3) / UNIT_MILLISECONDS[unit]}${unit}`;
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
  if (from.startsWith("now-") && to === "now") return `Last ${from.slice("now-".length)}`;
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
