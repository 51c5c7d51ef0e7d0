// A screen whose code comes when it is looked at first: what is on no screen costs nothing at the first paint.

import { signal } from "@preact/signals";
import type { FunctionComponent } from "preact";
import { Skeleton } from "./skeleton.tsx";

/** `load` is called once, when the screen is first drawn. */
export function lazyScreen(load: () => Promise<FunctionComponent>): FunctionComponent {
  const loaded = signal<FunctionComponent | undefined>(undefined);
  const failed = signal(false);
  let isAskedFor = false;

  const ask = (): void => {
    isAskedFor = true;
    failed.value = false;
    load().then(
      (component) => (loaded.value = component),
      () => (failed.value = true),
    );
  };

  return function LazyScreen() {
    if (!isAskedFor) ask();
    const Screen = loaded.value;
    if (Screen) return <Screen />;
    if (!failed.value) return <Skeleton what="this part of the page" shape="rows" />;
    return (
      <div class="screen-failed" role="alert">
        <p>A part of this page could not be loaded: the server does not answer, or has another version by now.</p>
        <button type="button" class="field-button" onClick={ask}>
          Try again
        </button>
        <button type="button" class="field-button" onClick={() => location.reload()}>
          Reload the page
        </button>
      </div>
    );
  };
}
