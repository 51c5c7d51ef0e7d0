// The screens of the window, and the row of names that leads to them.

import type { FunctionComponent } from "preact";
import type { Screen } from "../state/schema.ts";
import { FollowedLink } from "./followed-link.tsx";
import { lazyScreen } from "./lazy-screen.tsx";
import { ProfileScreen } from "./profile/profile-screen.tsx";
import { WITHOUT_FILE } from "./files/file-view.ts";
import { view } from "./store.ts";

/** In the order in which one goes through them. */
const TITLES: readonly (readonly [Screen, string])[] = [
  ["services", "Services"],
  ["profile", "Profile"],
  ["compare", "Compare"],
  ["labels", "Labels"],
  ["files", "Files"],
  ["status", "Status"],
];

/** These say nothing of a file. */
const OF_THE_SERVER: ReadonlySet<Screen> = new Set(["services", "status"]);

const SCREENS: Record<Screen, FunctionComponent> = {
  profile: ProfileScreen,
  services: lazyScreen(async () => (await import("./services-screen/services-screen.tsx")).ServicesScreen),
  compare: lazyScreen(async () => (await import("./compare/compare-screen.tsx")).CompareScreen),
  labels: lazyScreen(async () => (await import("./labels/labels-screen.tsx")).LabelsScreen),
  files: lazyScreen(async () => (await import("./files/files-screen.tsx")).FilesScreen),
  status: lazyScreen(async () => (await import("./status/status-screen.tsx")).StatusScreen),
};

export function CurrentScreen() {
  const { screen } = view.value;
  const Shown = SCREENS[screen];
  return <Shown key={screen} />;
}

/** Links, so that each opens in a tab of its own, and says where it leads. */
export function ScreenNav() {
  const { screen, file } = view.value;
  return (
    <nav class="screen-nav" aria-label="Screens">
      {TITLES.map(([target, title]) => (
        <FollowedLink
          key={target}
          patch={{ ...(file !== "" && OF_THE_SERVER.has(target) && WITHOUT_FILE), screen: target }}
          isCurrent={target === screen}
          testId={`screen-${target}`}
        >
          {title}
        </FollowedLink>
      ))}
    </nav>
  );
}
