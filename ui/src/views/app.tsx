// The one page: header, the screen that is looked at, a status line below.

import { effect } from "@preact/signals";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { copyCommand, copyLink } from "./actions.ts";
import { compareWithBefore } from "./commands.ts";
import { openExport } from "./export-parts.tsx";
import { FrameMenu } from "./frame-menu.tsx";
import { PANE_CHOICES } from "../state/schema.ts";
import { globalKeys, handleGlobalKey, type KeyActions } from "./global-keys.ts";
import { Header } from "./header.tsx";
import { notice } from "./notice.ts";
import { Help, isHelpOpen } from "./help.tsx";
import { isPaletteOpen, Palette } from "./palette.tsx";
import { isChooserOpen, ProfileChooser } from "./profile-chooser.tsx";
import { CurrentScreen } from "./screens.tsx";
import { lazyScreen } from "./lazy-screen.tsx";
import { addNote, comparePreviousVersion, openNotes } from "./notes.ts";
import { followSession, signInAsked } from "./session.ts";
import { StatusBar } from "./status-bar.tsx";
import { FileDrop } from "./files/file-drop.tsx";
import { lookedAtFile, refresh, service, update, view } from "./store.ts";
import { WaitLine } from "./wait-line.tsx";

const SignIn = lazyScreen(async () => (await import("./sign-in.tsx")).SignIn);
const NotesDialog = lazyScreen(async () => (await import("./notes-dialog.tsx")).NotesDialog);

export function App() {
  useEffect(followSession, []);
  useLayoutEffect(() => {
    document.addEventListener("keydown", handleKey);
    return () => document.removeEventListener("keydown", handleKey);
  }, []);
  useEffect(followTitle, []);

  // Nothing of what was seen before stays while the server does not know for whom.
  if (signInAsked.value) return <SignIn />;
  return (
    <>
      <Header />
      <CurrentScreen />
      <StatusBar />
      <Help />
      <ProfileChooser />
      <Palette />
      {openNotes.value && <NotesDialog />}
      <FrameMenu />
      <FileDrop />
      <WaitLine />
      <p class={`toast${notice.value === "" ? "" : " is-shown"}`} role="status">
        {notice.value}
      </p>
    </>
  );
}

function followTitle(): () => void {
  return effect(() => {
    const title = view.value.screen === "compare" ? "Compare" : (lookedAtFile.value?.name ?? service.value);
    document.title = title === undefined ? "Candela" : `${title} · Candela`;
  });
}

const keys: KeyActions = {
  ...globalKeys,
  "?": () => (isHelpOpen.value = !isHelpOpen.peek()),
  y: copyLink,
  Y: copyCommand,
  e: openExport,
  r: refresh,
  c: compareWithBefore,
  a: addNote,
  v: () => void comparePreviousVersion(),
  w: () => (isChooserOpen.value = true),
  u: () => update({ isUtc: !view.peek().isUtc }),
  ...Object.fromEntries(PANE_CHOICES.map((panes, index) => [String(index + 1), () => update({ screen: "profile", panes })])),
  l: () => update({ live: !view.peek().live }),
};

/**
 * Whether a dialog has the keys. The document knows it, and a signal only later: it follows the event of the dialog's end, before
 * which a quick reader's next key may come. The sheet of notes is loaded first, and what is typed meanwhile is not for the page.
 */
function isDialogOpen(): boolean {
  const isLoading = openNotes.peek() !== undefined && document.querySelector("dialog[data-testid=notes]") === null;
  return isLoading || signInAsked.peek() !== undefined || document.querySelector("dialog[open]") !== null;
}

function handleKey(event: KeyboardEvent): void {
  const closesHelp = event.key === "?" && isHelpOpen.peek();
  // Escape closes an open dialog, and only that.
  if (isDialogOpen() && !closesHelp) return;
  // Also where somebody types: it begins something else.
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key === "k") {
    event.preventDefault();
    isPaletteOpen.value = true;
    return;
  }
  handleGlobalKey(event, keys);
}
