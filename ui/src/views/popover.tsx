// A button that opens a panel below itself; Escape and a click elsewhere close it.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

interface PopoverProps {
  label: ComponentChildren;
  title: string;
  className?: string;
  align?: "left" | "right";
  above?: boolean;
  testId?: string;
  children: (close: () => void) => ComponentChildren;
}

export function Popover({
  label,
  title,
  className = "",
  align = "left",
  above = false,
  testId,
  children,
}: PopoverProps) {
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);

  // Before the paint: a panel that is to be seen closes by the keys, from its first frame on.
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    const abort = new AbortController();
    const options = { signal: abort.signal, capture: true };
    document.addEventListener(
      "pointerdown",
      (event) => !root.current?.contains(event.target as Node) && setOpen(false),
      options,
    );
    document.addEventListener(
      "keydown",
      (event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        setOpen(false);
        button.current?.focus();
      },
      options,
    );
    return () => abort.abort();
  }, [isOpen]);

  return (
    <div class={`popover ${className}`} ref={root}>
      <button
        type="button"
        class="field-button"
        ref={button}
        title={title}
        aria-expanded={isOpen}
        aria-haspopup="dialog"
        data-testid={testId}
        onClick={() => setOpen(!isOpen)}
      >
        {label}
      </button>
      {isOpen && (
        <div class={`popover-panel align-${align}${above ? " is-above" : ""}`} role="dialog" aria-label={title}>
          {children(() => setOpen(false))}
        </div>
      )}
    </div>
  );
}
