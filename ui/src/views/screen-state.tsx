// What a screen shows instead of its contents: still loading, refused, or empty.

import type { ComponentChildren } from "preact";
import type { ApiError } from "../api/requests.ts";
import { Failure } from "./empty-state.tsx";
import { Skeleton } from "./skeleton.tsx";
import { refresh } from "./store.ts";

interface ScreenStateProps {
  error: ApiError | undefined;
  loading: boolean;
  retry?: () => void;
  /** What to say when there is nothing. */
  children: ComponentChildren;
}

export function ScreenState({ error, loading, retry = refresh, children }: ScreenStateProps) {
  if (loading && !error) return <Skeleton what="this screen" shape="rows" />;
  if (!error) return <>{children}</>;
  return <Failure error={error} retry={retry} />;
}
