// Servers tell causes in lower case and without a stop, as parts of a line.

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Not for what ends with a command, which somebody copies. */
export function asSentence(text: string): string {
  return capitalized(/[.!?]$/.test(text) ? text : `${text}.`);
}
