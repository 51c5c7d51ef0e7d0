// Names into boxes. Widths come from a table of single characters: measuring each name costs more than drawing it, and the text is
// drawn without kerning, so that the sum of the widths is the width.

const TABLE_SIZE = 128;
const ELLIPSIS = "…";

export class TextFitter {
  readonly #widths = new Float64Array(TABLE_SIZE);
  readonly #measure: (text: string) => number;
  readonly #ellipsisWidth: number;

  constructor(measure: (text: string) => number) {
    this.#measure = measure;
    for (let code = 32; code < TABLE_SIZE; code++) this.#widths[code] = measure(String.fromCharCode(code));
    this.#ellipsisWidth = measure(ELLIPSIS);
  }

  widthOf(text: string): number {
    let width = 0;
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      if (code >= TABLE_SIZE) return this.#measure(text);
      width += this.#widths[code];
    }
    return width;
  }

  /** The name, else its short form, else as much of the short form as fits and an ellipsis, else nothing. */
  fit(name: string, shortName: string, available: number): string {
    if (this.widthOf(name) <= available) return name;
    if (shortName !== name && this.widthOf(shortName) <= available) return shortName;
    return this.cut(shortName, available);
  }

  cut(text: string, available: number): string {
    const room = available - this.#ellipsisWidth;
    let width = 0;
    let end = 0;
    for (const character of text) {
      const code = character.charCodeAt(0);
      width += code < TABLE_SIZE ? this.#widths[code] : this.#measure(character);
      if (width > room) break;
      end += character.length;
    }
    // Two letters and dots say nothing.
    return end < 3 ? "" : text.slice(0, end) + ELLIPSIS;
  }
}
