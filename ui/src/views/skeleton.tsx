// Where something will be: shapes instead of nothing, and instead of a page that jumps.

import "../styles/waiting.css";

interface SkeletonProps {
  /** What is on its way. */
  what: string;
  shape: "rows" | "flame" | "chart";
}

const PARTS = { rows: 6, flame: 8, chart: 0 };

export function Skeleton({ what, shape }: SkeletonProps) {
  return (
    <div class={shape === "rows" ? "skeleton" : `${shape}-skeleton`} role="status" aria-label={`Loading ${what}`} data-testid={`${shape}-skeleton`}>
      {Array.from({ length: PARTS[shape] }, (_, part) => (
        <span key={part} />
      ))}
    </div>
  );
}
