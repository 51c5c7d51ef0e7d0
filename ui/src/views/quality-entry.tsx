// One word of the quality bar, which opens what is behind it.

import type { ComponentChildren } from "preact";
import { Popover } from "./popover.tsx";

interface QualityEntryProps {
  title: string;
  label: string;
  isWorrying?: boolean;
  testId: string;
  children: ComponentChildren;
}

export function QualityEntry({ title, label, isWorrying = false, testId, children }: QualityEntryProps) {
  return (
    <Popover
      title={title}
      align="right"
      above
      className="quality"
      testId={testId}
      label={<span class={isWorrying ? "is-worrying" : undefined}>{label}</span>}
    >
      {() => (
        <div class="quality-panel quality-note">
          <h2>{title}</h2>
          {children}
        </div>
      )}
    </Popover>
  );
}
