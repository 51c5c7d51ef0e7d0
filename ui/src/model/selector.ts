// Just enough of the selector language to let a click on a service edit what the user typed. The server is the judge of a
// selector; what does not parse here is sent as it is and its error shown.

export interface Matcher {
  label: string;
  operator: "=" | "!=" | "=~" | "!~";
  value: string;
}

const SERVICE_LABEL = "service_name";

/** The matchers of `{a="b", c=~"d"}`, or `undefined` when this is not one. Text without braces is accepted, as by the server. */
export function parseSelector(text: string): Matcher[] | undefined {
  const trimmed = text.trim();
  const body = trimmed.startsWith("{") && trimmed.endsWith("}") ? trimmed.slice(1, -1) : trimmed;
  const matchers: Matcher[] = [];
  const pattern = /\s*([A-Za-z_][\w.\-/]*|"(?:[^"\\]|\\.)*")\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*")\s*(,|$)/y;
  while (pattern.lastIndex < body.length) {
    if (body.slice(pattern.lastIndex).trim() === "") break;
    const found = pattern.exec(body);
    if (!found) return undefined;
    const label = found[1].startsWith('"') ? unquote(found[1]) : found[1];
    const value = unquote(found[3]);
    if (label === undefined || value === undefined) return undefined;
    matchers.push({ label, operator: found[2] as Matcher["operator"], value });
  }
  return matchers;
}

function unquote(literal: string): string | undefined {
  try {
    const value: unknown = JSON.parse(literal);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

export function formatSelector(matchers: readonly Matcher[]): string {
  const parts = matchers.map(
    ({ label, operator, value }) =>
      `${/^[A-Za-z_]\w*$/.test(label) ? label : JSON.stringify(label)}${operator}${JSON.stringify(value)}`,
  );
  return `{${parts.join(", ")}}`;
}

/** The one service the selector names, if it names one. */
export function serviceOf(selector: string): string | undefined {
  return parseSelector(selector)?.find(({ label, operator }) => label === SERVICE_LABEL && operator === "=")?.value;
}

/** The selector with its service replaced; `undefined` for all services. Other matchers stay. */
export function withService(selector: string, service: string | undefined): string {
  const others = (parseSelector(selector) ?? []).filter(({ label }) => label !== SERVICE_LABEL);
  if (service === undefined) return formatSelector(others);
  return formatSelector([{ label: SERVICE_LABEL, operator: "=", value: service }, ...others]);
}
