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

/** What a reader typed, as it is sent: a date without a zone is in the zone of the page, and so is a day, which begins at its midnight. */
export function timeParameter(typed: string, isUtc = false): string {
  const text = typed.trim();
  const found = /^(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}(?::\d{2})?))?$/.exec(text);
  // The language reads a date alone as UTC, one with a time as local.
  const local = found ? Date.parse(`${found[1]}T${found[2] ?? "00:00"}${isUtc ? "Z" : ""}`) : Number.NaN;
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

/** A moment as the API and the address take it. Few milliseconds would be read as seconds. */
export function momentText(milliseconds: number): string {
  const rounded = Math.round(milliseconds);
  return rounded >= MILLISECONDS_FROM ? String(rounded) : new Date(rounded).toISOString();
}

export function isRelative(text: string): boolean {
  return text.trim().startsWith("now");
}

const pad = (value: number): string => String(value).padStart(2, "0");

export interface ClockOptions {
  date?: boolean;
  seconds?: boolean;
  milliseconds?: boolean;
  /** In UTC instead of the reader's zone. */
  isUtc?: boolean;
}

/** `14:03:07`, with the date when asked. Every time on the page is written here. */
export function formatClock(
  milliseconds: number,
  { date, seconds, milliseconds: hasMilliseconds = false, isUtc = false }: ClockOptions = {},
): string {
  const at = zoned(milliseconds, isUtc);
  const fraction = hasMilliseconds ? `.${String(at.getUTCMilliseconds()).padStart(3, "0")}` : "";
  const time = `${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}${seconds === false ? "" : `:${pad(at.getUTCSeconds())}${fraction}`}`;
  return date ? `${dayOf(at)} ${time}` : time;
}

/** The moment whose UTC fields are what a clock of the zone shows. */
function zoned(milliseconds: number, isUtc: boolean): Date {
  const at = new Date(milliseconds);
  return isUtc ? at : new Date(milliseconds - at.getTimezoneOffset() * 60e3);
}

function dayOf(at: Date): string {
  return `${at.getUTCFullYear()}-${pad(at.getUTCMonth() + 1)}-${pad(at.getUTCDate())}`;
}

/** Ends of shorter ranges are told to the millisecond. */
const SHOWN_TO_THE_MILLISECOND = 10e3;

export function isShortRange({ from, to }: TimeRange): boolean {
  return to - from < SHOWN_TO_THE_MILLISECOND;
}

/** `Last hour`, or `2026-11-21 10:00 – 11:00`, with the second date only where it differs, and seconds only where there are some. */
export function describeRange(from: string, to: string, resolved: TimeRange, isUtc = false): string {
  const preset = to === "now" ? PRESETS.find((candidate) => candidate.from === from) : undefined;
  if (preset) return preset.label;
  if (from.startsWith("now-") && to === "now") return `Last ${from.slice("now-".length)}`;
  const ends = describeSpan(resolved, isUtc);
  return isUtc ? `${ends} UTC` : ends;
}

/** Both ends of a range, as short as they can be without leaving anything out. */
export function describeSpan({ from, to }: TimeRange, isUtc = false): string {
  const isSameDay = dayOf(zoned(from, isUtc)) === dayOf(zoned(to, isUtc));
  const seconds = from % 60e3 !== 0 || to % 60e3 !== 0;
  const milliseconds = isShortRange({ from, to }) && (from % 1e3 !== 0 || to % 1e3 !== 0);
  const times = { seconds, milliseconds, isUtc };
  return `${formatClock(from, { ...times, date: true })} – ${formatClock(to, { ...times, date: !isSameDay })}`;
}

const STEP_CHOICES_SECONDS = [20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400];
/** The agent sends one profile a little more than every 10 s: a step of less than two of them would show holes and spikes. */
const MAXIMUM_POINTS = 400;

/** Seconds a point of the series stands for. */
export function seriesStep(range: TimeRange): number {
  const seconds = Math.max(1, (range.to - range.from) / 1e3);
  return STEP_CHOICES_SECONDS.find((step) => seconds / step <= MAXIMUM_POINTS) ?? Math.ceil(seconds / MAXIMUM_POINTS);
}
