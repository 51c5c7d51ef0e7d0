// Where in the text of a JSON document something stands: a path of keys and indices, or a line and a column.

export type DocumentPath = readonly (string | number)[];

/** From 1; of the document where its JSON is broken, else of the text that stands at the path. */
export interface TextPosition {
  line: number;
  column: number;
}

export interface TextPlace {
  start: number;
  end: number;
}

interface Entry {
  /** Of the key, or of the value where there is none. */
  start: number;
  /** As it is written: what has escapes is not found, and what surrounds it is selected. */
  key: string;
  keyEnd: number;
  value: number;
  end: number;
}

/** What is to be selected: a member with its value, the key of a longer one, or what surrounds it where it is not there. */
export function placeOf(text: string, path: DocumentPath, position: TextPosition | null): TextPlace | undefined {
  if (path.length === 0) return position ? wordAt(text, offsetOf(text, position), text.length) : undefined;
  let value = skipSpace(text, 0);
  let place: TextPlace = { start: value, end: value + 1 };
  for (const step of path) {
    const entry = entryOf(text, value, step);
    if (!entry) return place;
    value = entry.value;
    const isLong = text[value] === "{" || text[value] === "[";
    place = { start: entry.start, end: isLong ? Math.max(entry.keyEnd, entry.start + 1) : entry.end };
  }
  return position && text[value] === '"' ? insideString(text, value, position) : place;
}

function entryOf(text: string, open: number, step: string | number): Entry | undefined {
  if (text[open] !== (typeof step === "number" ? "[" : "{")) return undefined;
  let index = 0;
  for (const entry of entries(text, open)) {
    if (typeof step === "number" ? index === step : isSpelled(step, entry.key)) return entry;
    index += 1;
  }
  return undefined;
}

/** Paths have the names with underscores, texts those or the ones with capitals. */
function isSpelled(name: string, key: string): boolean {
  return key === name || key === name.replaceAll(/_+(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** Of what is broken, those before the break. */
function* entries(text: string, open: number): Generator<Entry> {
  const isObject = text[open] === "{";
  let at = skipSpace(text, open + 1);
  while (at < text.length && text[at] !== "}" && text[at] !== "]") {
    const start = at;
    const keyEnd = isObject ? valueEnd(text, at) : at;
    const value = isObject ? skipSpace(text, skipSpace(text, keyEnd) + 1) : at;
    const end = valueEnd(text, value);
    if (end <= start) return;
    yield { start, key: text.slice(start + 1, keyEnd - 1), keyEnd, value, end };
    at = skipSpace(text, end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
}

function skipSpace(text: string, at: number): number {
  let end = at;
  while (end < text.length && " \t\r\n".includes(text[end])) end += 1;
  return end;
}

function valueEnd(text: string, start: number): number {
  if (text[start] === '"') return stringEnd(text, start);
  let depth = 0;
  let at = start;
  while (at < text.length) {
    const letter = text[at];
    if (letter === "{" || letter === "[") depth += 1;
    if (depth === 0 && ", \t\r\n}]".includes(letter)) return at;
    if (letter === "}" || letter === "]") depth -= 1;
    at = letter === '"' ? stringEnd(text, at) : at + 1;
    if (depth === 0 && (letter === "}" || letter === "]")) return at;
  }
  return at;
}

function stringEnd(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return Math.min(at + 1, text.length);
}

/** A line and a column of what a string says, in the string as it is written, with its escapes. */
function insideString(text: string, open: number, { line, column }: TextPosition): TextPlace {
  const end = stringEnd(text, open) - 1;
  let at = open + 1;
  let lineHere = 1;
  let columnHere = 1;
  while (at < end && (lineHere < line || (lineHere === line && columnHere < column))) {
    const isLineBreak = text.startsWith("\\n", at);
    lineHere += isLineBreak ? 1 : 0;
    columnHere = isLineBreak ? 1 : columnHere + 1;
    at += writtenLength(text, at);
  }
  return wordAt(text, at, end);
}

/** Of one character, as it is written; of one beyond 16 bits that is escaped, half. */
function writtenLength(text: string, at: number): number {
  if (text[at] === "\\") return text[at + 1] === "u" ? 6 : 2;
  return characterLength(text, at);
}

function characterLength(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
}

function offsetOf(text: string, { line, column }: TextPosition): number {
  let at = 0;
  for (let before = 1; before < line; before += 1) {
    const lineBreak = text.indexOf("\n", at);
    if (lineBreak < 0) return text.length;
    at = lineBreak + 1;
  }
  for (let before = 1; before < column && at < text.length && text[at] !== "\n"; before += 1) at += characterLength(text, at);
  return at;
}

const WORD = /[\w.-]+/y;

/** One character where no word begins; nothing at the end. */
function wordAt(text: string, start: number, limit: number): TextPlace {
  WORD.lastIndex = start;
  const length = WORD.exec(text)?.[0].length ?? writtenLength(text, start);
  return { start, end: Math.min(start + length, limit) };
}
