// A change of the fleet's document, from its first letter until it is applied: what is typed, what the server says of it, and who was quicker.

import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { ApiError, Parameters } from "../../api/requests.ts";
import { documentText, type DocumentCheck, type DocumentVersion } from "../../model/fleet.ts";
import { asApiError, Loader } from "../loader.ts";
import { announce } from "../notice.ts";
import { requests } from "../store.ts";

export const PERSISTENCE = "fleet/persistence";

/** Who types on is not interrupted. */
const PAUSE_MILLISECONDS = 250;
const CONFLICT = 409;

interface ChangeState {
  text: string;
  /** The version that is changed: what its author has seen. */
  base: DocumentVersion;
  /** What somebody else has applied meanwhile. */
  conflict?: DocumentVersion | undefined;
  /** One's own text, while that of somebody else is edited. */
  setAside?: string | undefined;
  /** Why it was not applied. */
  refused?: ApiError | undefined;
  /** What would be applied stands in sight, and the reader is asked. */
  isConfirming?: boolean;
  isSending?: boolean;
}

interface Checked {
  text: string;
  check: DocumentCheck;
}

/** As it was applied: the latest, or one of those that are kept. */
export function readVersion(number: number | undefined, abort: AbortSignal): Promise<DocumentVersion> {
  return requests.json(number === undefined ? PERSISTENCE : `${PERSISTENCE}/versions/${number}`, [], abort);
}

export class DocumentChange {
  /** An old version that is applied once more; its text is not typed at. */
  readonly rolledBackTo: number | undefined;
  readonly #state: Signal<ChangeState>;
  readonly #loader = new Loader<Checked>("the check of the document");
  #pause: ReturnType<typeof setTimeout> | undefined;

  constructor(base: DocumentVersion, old?: DocumentVersion) {
    this.rolledBackTo = old?.version;
    this.#state = signal({ base, text: documentText((old ?? base).document) });
  }

  get state(): ReadonlySignal<ChangeState> {
    return this.#state;
  }

  /** Of the text before, while that of now is on its way. */
  readonly check = computed(() => this.#loader.state.value.data?.check);
  readonly isChecked = computed(() => this.#loader.state.value.data?.text === this.#state.value.text);
  /** Why the text could not be checked. */
  readonly checkError = computed(() => this.#loader.state.value.error);

  /** It was checked as it stands, and would change something of what its author has seen. */
  readonly isReady = computed(() => {
    const { base, conflict, isSending } = this.#state.value;
    const check = this.check.value;
    if (!check || !this.isChecked.value || conflict || isSending) return false;
    return check.problems.length === 0 && check.diff.length > 0 && check.version === base.version;
  });

  get isChanged(): boolean {
    const { text, base, setAside } = this.#state.value;
    return text !== documentText(base.document) || setAside !== undefined;
  }

  type(text: string): void {
    this.#set({ text, refused: undefined });
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => void this.checkNow(), PAUSE_MILLISECONDS);
  }

  /** The check before is dropped, wherever it is. */
  checkNow(): Promise<void> {
    clearTimeout(this.#pause);
    const { text } = this.#state.peek();
    return this.#loader.load(text, async (abort) => {
      const check = await this.#send<DocumentCheck>("POST", "/check", [], text, abort);
      const isSeen = check.version === this.#state.peek().base.version;
      this.#compare(isSeen ? undefined : await readVersion(undefined, abort));
      return { text, check };
    });
  }

  confirm(isConfirming: boolean): void {
    this.#set({ isConfirming });
  }

  /** Nothing is asked any more on behalf of who has left. */
  rest(): void {
    clearTimeout(this.#pause);
    this.#set({ isConfirming: false, refused: undefined });
  }

  /**
   * It becomes a change of what the other has applied: with the other's text, and one's own is kept, or with one's own, and the difference
   * shows what it takes back.
   */
  rebase(takesTheirs: boolean): void {
    const { conflict: base, text } = this.#state.peek();
    if (!base) return;
    this.#set({ base, conflict: undefined, ...(takesTheirs && { text: documentText(base.document), setAside: text }) });
    void this.checkNow();
  }

  /** Twice is as it was. */
  swapSetAside(): void {
    const { text, setAside = text } = this.#state.peek();
    this.#set({ text: setAside, setAside: text });
    void this.checkNow();
  }

  /** Whether it is applied now. */
  async apply(): Promise<boolean> {
    if (!this.isReady.peek()) return false;
    const { rolledBackTo } = this;
    const abort = new AbortController().signal;
    this.#set({ isSending: true, refused: undefined });
    try {
      const base = await (rolledBackTo === undefined
        ? this.#send<DocumentVersion>("PUT", "", [], this.#state.peek().text, abort)
        : this.#send<DocumentVersion>("POST", "/rollback", [["to", String(rolledBackTo)]], "", abort));
      this.#set({ base, text: documentText(base.document), setAside: undefined });
      announce(`Version ${base.version} is applied`);
      return true;
    } catch (error) {
      const refused = asApiError(error);
      this.#set({ refused, isConfirming: false });
      // Without the other's text the server's words have to do: they say who it was.
      if (refused.status === CONFLICT) this.#compare(await readVersion(undefined, abort).catch(() => undefined));
      return false;
    } finally {
      this.#set({ isSending: false });
    }
  }

  /** `current` is what is applied, where that may be another than what was seen. */
  #compare(current: DocumentVersion | undefined): void {
    const isOther = current !== undefined && current.version !== this.#state.peek().base.version;
    this.#set(isOther ? { conflict: current, isConfirming: false, refused: undefined } : { conflict: undefined });
  }

  #set(changes: Partial<ChangeState>): void {
    this.#state.value = { ...this.#state.peek(), ...changes };
  }

  async #send<T>(method: string, path: string, parameters: Parameters, body: string, abort: AbortSignal): Promise<T> {
    const headers = { "content-type": "application/json", "if-match": `"${this.#state.peek().base.version}"` };
    return (await requests.send({ method, body, headers }, PERSISTENCE + path, parameters, abort)).json() as Promise<T>;
  }
}
