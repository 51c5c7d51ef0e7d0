// Line icons on a 16-pixel grid, drawn in the colour of the text around them.

import type { ComponentChildren } from "preact";

function Icon({ children }: { children: ComponentChildren }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 16 16"
      width="16"
      height="16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  );
}

export const SearchIcon = () => (
  <Icon>
    <circle cx="7" cy="7" r="4.25" />
    <path d="M10.2 10.2 14 14" />
  </Icon>
);

export const CloseIcon = () => (
  <Icon>
    <path d="m4.5 4.5 7 7m0-7-7 7" />
  </Icon>
);

export const FlipIcon = () => (
  <Icon>
    <path d="M5 13V3M2.5 5.5 5 3l2.5 2.5M11 3v10M8.5 10.5 11 13l2.5-2.5" />
  </Icon>
);

export const SunIcon = () => (
  <Icon>
    <circle cx="8" cy="8" r="2.75" />
    <path d="M8 1.5v1.25M8 13.25v1.25M1.5 8h1.25M13.25 8h1.25M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9" />
  </Icon>
);

export const MoonIcon = () => (
  <Icon>
    <path d="M13.2 9.8A5.6 5.6 0 0 1 6.2 2.8a5.6 5.6 0 1 0 7 7Z" />
  </Icon>
);

export const ChevronIcon = () => (
  <Icon>
    <path d="m4.5 6.25 3.5 3.5 3.5-3.5" />
  </Icon>
);

export const LinkIcon = () => (
  <Icon>
    <path d="M6.75 9.25a2.5 2.5 0 0 0 3.6 0l2.4-2.4a2.55 2.55 0 0 0-3.6-3.6l-.9.9M9.25 6.75a2.5 2.5 0 0 0-3.6 0l-2.4 2.4a2.55 2.55 0 0 0 3.6 3.6l.9-.9" />
  </Icon>
);

export const DownloadIcon = () => (
  <Icon>
    <path d="M8 2.5v7.5M4.75 7 8 10.25 11.25 7M2.75 13.25h10.5" />
  </Icon>
);

export const ZoomOutIcon = () => (
  <Icon>
    <circle cx="7" cy="7" r="4.25" />
    <path d="M10.2 10.2 14 14M5 7h4" />
  </Icon>
);

/** The mark: a flame made of the rows of a flame graph. */
export const Mark = () => (
  <svg class="mark" viewBox="0 0 22 24" width="22" height="24" aria-hidden="true">
    <rect class="mark-1" x="9" y="0" width="4" height="5" rx="1" />
    <rect class="mark-2" x="6.5" y="6" width="9" height="5" rx="1" />
    <rect class="mark-3" x="3.5" y="12" width="15" height="5" rx="1" />
    <rect class="mark-4" x="1" y="18" width="20" height="5" rx="1" />
  </svg>
);

/** A list with one chosen. */
export const ChooseIcon = () => (
  <Icon>
    <path d="M6.5 4h7M6.5 8h7M6.5 12h7M2.25 8l1.25 1.25L5 7.25" />
  </Icon>
);

export const BookmarkIcon = () => (
  <Icon>
    <path d="M4.25 2.25h7.5v11.5L8 10.75l-3.75 3Z" />
  </Icon>
);

export const FlagIcon = () => (
  <Icon>
    <path d="M3.5 14V2.5M3.5 3h9l-2 3 2 3h-9" />
  </Icon>
);
