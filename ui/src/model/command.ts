// The command line that gives the answer on the screen. Its parts may come from a link somebody sent: each is quoted, so that
// pasting it runs one command and nothing else.

export interface CommandSelection {
  query: string;
  type: string;
  from: string;
  to: string;
}

export function queryCommand(server: string, { query, type, from, to }: CommandSelection): string {
  const options = { server, query, type, from, to };
  return [
    "candela query top",
    ...Object.entries(options).map(([name, value]) => `--${name} ${shellQuote(value)}`),
  ].join(" ");
}

/** Plain words stay as they are; in single quotes the shell reads nothing but the closing quote. */
export function shellQuote(text: string): string {
  return /^[\w.:/@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
