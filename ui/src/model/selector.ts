// The selector language as the server reads it (crates/model/src/selector.rs), so that a click on a service can edit what the user
// typed. The server is the judge of a selector: what does not parse here is never rewritten, but sent as it is and its error shown.

export interface Matcher {
  label: string;
  operator: "=" | "!=" | "=~" | "!~";
  value: string;
}

const SERVICE_LABEL = "service_name";

/** The matchers of `{a="b", c=~'d'}`, or `undefined` when this is not one. */
export function parseSelector(text: string): Matcher[] | undefined {
  return new Parser(text).selector();
}

export function formatSelector(matchers: readonly Matcher[]): string {
  const parts = matchers.map(({ label, operator, value }) => {
    const name = /^[\w.:/-]+$/.test(label) ? label : quoted(label);
    return `${name}${operator}${quoted(value)}`;
  });
  return `{${parts.join(", ")}}`;
}

/** The one service the selector names, if it names one. */
export function serviceOf(selector: string): string | undefined {
  return parseSelector(selector)?.find(({ label, operator }) => label === SERVICE_LABEL && operator === "=")?.value;
}

/** Whether every series passes. What does not parse may mean anything else. */
export function selectsAll(selector: string): boolean {
  return parseSelector(selector)?.length === 0;
}

/** Whether it leaves the service open. */
export function selectsEveryService(selector: string): boolean {
  return parseSelector(selector)?.every(({ label }) => label !== SERVICE_LABEL) ?? false;
}

/** The selector with its service replaced (`undefined` for all), other matchers as they are; `undefined` when it does not parse. */
export function withService(selector: string, service: string | undefined): string | undefined {
  const others = parseSelector(selector)?.filter(({ label }) => label !== SERVICE_LABEL);
  if (others === undefined) return undefined;
  if (service === undefined) return formatSelector(others);
  return formatSelector([{ label: SERVICE_LABEL, operator: "=", value: service }, ...others]);
}

/** The selector with what it says of a label replaced by one value, or taken out (`undefined`); `undefined` when it does not parse. */
export function withLabel(selector: string, label: string, value: string | undefined): string | undefined {
  const others = parseSelector(selector)?.filter((matcher) => matcher.label !== label);
  if (others === undefined) return undefined;
  return formatSelector(value === undefined ? others : [...others, { label, operator: "=", value }]);
}

/** The one value that the selector names of a label, if it names one. */
export function valueOf(selector: string, label: string): string | undefined {
  return parseSelector(selector)?.find((matcher) => matcher.label === label && matcher.operator === "=")?.value;
}

const ESCAPES: Record<string, string> = { n: "\n", t: "\t", r: "\r", '"': '"', "'": "'", "\\": "\\" };
const PRINTED: Record<string, string> = { "\n": String.raw`\n`, "\t": String.raw`\t`, "\r": String.raw`\r` };

/** Not as JSON: the server keeps both characters of an escape that it does not know, such as `\u`. */
function quoted(text: string): string {
  return `"${text.replace(/["\\\n\t\r]/g, (character) => PRINTED[character] ?? `\\${character}`)}"`;
}

/** Every method returns `undefined` where the text goes on otherwise; what is read until then does not matter any more. */
class Parser {
  readonly #text: string;
  #position = 0;

  constructor(text: string) {
    this.#text = text;
  }

  selector(): Matcher[] | undefined {
    this.#skipSpace();
    if (this.#atEnd) return [];
    if (!this.#eat("{")) return undefined;
    const matchers: Matcher[] = [];
    for (;;) {
      this.#skipSpace();
      if (this.#eat("}")) break;
      const matcher = this.#matcher();
      if (matcher === undefined) return undefined;
      matchers.push(matcher);
      this.#skipSpace();
      if (this.#eat(",")) continue;
      if (this.#eat("}")) break;
      return undefined;
    }
    this.#skipSpace();
    return this.#atEnd ? matchers : undefined;
  }

  #matcher(): Matcher | undefined {
    const label = this.#peek === '"' || this.#peek === "'" ? this.#quoted() : this.#take(/[\p{Alphabetic}\p{N}_.:/-]+/uy);
    this.#skipSpace();
    const operator = this.#take(/=~|!~|!=|=/y) as Matcher["operator"] | undefined;
    this.#skipSpace();
    const value = this.#quoted();
    return label === undefined || operator === undefined || value === undefined ? undefined : { label, operator, value };
  }

  #quoted(): string | undefined {
    const quote = this.#take(/["'`]/y);
    if (quote === undefined) return undefined;
    let value = "";
    while (!this.#atEnd) {
      const character = this.#next();
      if (character === quote) return value;
      if (character !== "\\" || quote === "`") {
        value += character;
        continue;
      }
      if (this.#atEnd) return undefined;
      const escaped = this.#next();
      // `\.` and `\d` are what people type in patterns: both characters are kept.
      value += ESCAPES[escaped] ?? `\\${escaped}`;
    }
    return undefined;
  }

  get #atEnd(): boolean {
    return this.#position >= this.#text.length;
  }

  get #peek(): string | undefined {
    return this.#text[this.#position];
  }

  #next(): string {
    return this.#text[this.#position++];
  }

  #eat(character: string): boolean {
    if (this.#peek !== character) return false;
    this.#position++;
    return true;
  }

  #skipSpace(): void {
    this.#take(/\s+/uy);
  }

  /** What the sticky pattern finds right here. */
  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#position;
    const found = pattern.exec(this.#text)?.[0];
    this.#position += found?.length ?? 0;
    return found;
  }
}
