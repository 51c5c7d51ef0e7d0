// A link to another view of this page: followed without a reload, and a real link for a tab of its own.

import type { ComponentChildren } from "preact";
import type { ViewState } from "../state/schema.ts";
import { printLink } from "../state/url.ts";
import { update, view } from "./store.ts";

interface FollowedLinkProps {
  /** What is different there. */
  patch: Partial<ViewState>;
  class?: string;
  testId?: string;
  title?: string;
  isCurrent?: boolean;
  children: ComponentChildren;
}

export function FollowedLink({ patch, class: className, testId, title, isCurrent, children }: FollowedLinkProps) {
  return (
    <a
      class={className}
      title={title}
      data-testid={testId}
      aria-current={isCurrent ? "page" : undefined}
      href={printLink({ ...view.value, ...patch })}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        update(patch);
      }}
    >
      {children}
    </a>
  );
}
