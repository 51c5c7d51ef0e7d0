// Files may be dropped anywhere: what happens then is said before they are let go of.

import { signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { isLoopback } from "../../model/loopback.ts";
import { announce } from "../notice.ts";

const isOver = signal(false);

/** Loaded when it is needed first; by then the files have left the event, so they are taken out before. */
export function receive(files: readonly File[]): void {
  import("./receive.ts").then(
    ({ receiveFiles }) => receiveFiles(files),
    () => announce("The server does not answer: start it with candela up"),
  );
}

export function FileDrop() {
  useLayoutEffect(followDrags, []);
  if (!isOver.value) return null;
  return (
    <div class="file-drop" aria-hidden="true" data-testid="file-drop">
      <p>
        <strong>Drop profile files</strong>
        {isLoopback(location.hostname)
          ? "They stay on this machine and are not stored."
          : `You are asked before they are sent to ${location.host}.`}
      </p>
    </div>
  );
}

function followDrags(): () => void {
  /** Each element that is entered is left again, in an order that differs between browsers. */
  let depth = 0;
  const end = (): void => {
    depth = 0;
    isOver.value = false;
  };
  const listeners: Record<string, (event: DragEvent, isTaken: boolean) => void> = {
    dragenter: (_, isTaken) => {
      depth++;
      isOver.value = !isTaken;
    },
    dragleave: () => {
      depth--;
      if (depth <= 0) end();
    },
    dragover: (_, isTaken) => {
      isOver.value = !isTaken;
    },
    drop: (event, isTaken) => {
      end();
      if (!isTaken) receive([...(event.dataTransfer?.files ?? [])]);
    },
  };
  const onDrag = (event: DragEvent): void => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    // Below the pointer is what takes files for itself, and may have promised that they go nowhere.
    const isTaken = event.defaultPrevented;
    // Without this the browser would leave the page for the file.
    event.preventDefault();
    listeners[event.type]?.(event, isTaken);
  };
  const types = Object.keys(listeners) as ("dragenter" | "dragleave" | "dragover" | "drop")[];
  for (const type of types) document.addEventListener(type, onDrag);
  return () => {
    for (const type of types) document.removeEventListener(type, onDrag);
  };
}
