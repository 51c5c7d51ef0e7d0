// For tests of components: a real document (happy-dom) with a server behind it. What is not drawn has no size: canvases and lists are
// as large as in the beginning.

import { render, type ComponentChildren } from "preact";
import { vi } from "vitest";
import { FakeServer } from "./fake-server.ts";

/** Effects come after the next picture, which a page without pictures waits for a little. */
const PICTURE_MILLISECONDS = 50;

export class RenderedPage extends FakeServer {
  readonly root: HTMLElement;

  constructor(search: string) {
    super();
    window.history.replaceState(null, "", search);
    this.root = document.createElement("div");
    document.body.replaceChildren(this.root);
  }

  async settle(): Promise<void> {
    await vi.advanceTimersByTimeAsync(PICTURE_MILLISECONDS);
  }

  async show(children: ComponentChildren): Promise<void> {
    render(children, this.root);
    await this.settle();
  }

  /** Ends what listens beyond a test. */
  close(): void {
    render(null, this.root);
  }

  /** As it is read: one line, whatever the elements. */
  get text(): string {
    return textOf(this.root);
  }

  byTestId(id: string): HTMLElement | null {
    return this.root.querySelector<HTMLElement>(`[data-testid="${id}"]`);
  }

  all(selector: string): HTMLElement[] {
    return [...this.root.querySelectorAll<HTMLElement>(selector)];
  }

  /** Named by its text, or by its label. */
  button(name: string): HTMLElement {
    const found = this.all("button, a").find((element) => textOf(element) === name || element.getAttribute("aria-label") === name);
    if (!found) throw new Error(`no button ${name} in: ${this.text}`);
    return found;
  }

  async click(name: string): Promise<void> {
    this.button(name).click();
    await this.settle();
  }

  async press(element: HTMLElement, key: string, init: KeyboardEventInit = {}): Promise<KeyboardEvent> {
    const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...init });
    element.dispatchEvent(event);
    await this.settle();
    return event;
  }
}

export function textOf(element: Element): string {
  return (element.textContent ?? "").replaceAll(/\s+/g, " ").trim();
}
