// Profile files of one's own: dropped or chosen, looked at and compared, and stored only where that is asked for.

import { useEffect, useRef, useState } from "preact/hooks";
import { commonType, type FileAbout } from "../../model/file-about.ts";
import { printFileReference } from "../../model/file-reference.ts";
import "../../styles/screens.css";
import "../../styles/files.css";
import { Hint } from "../hint.tsx";
import { lookedAtFile, update } from "../store.ts";
import { FileRow } from "./file-row.tsx";
import { viewOfFile } from "./file-view.ts";
import { openFileOf, openFiles, waitingFiles, type OpenFile } from "./open-files.ts";
import { isLocal, receiveFiles, sendWaiting } from "./receive.ts";

export function FilesScreen() {
  const [chosen, setChosen] = useState<readonly number[]>([]);
  const files = openFiles.value;
  const sides = chosen.flatMap((key) => files.find((file) => file.key === key && file.about) ?? []);
  const choose = (key: number): void => {
    // A third one takes the place of the first: two are what can be compared.
    setChosen(chosen.includes(key) ? chosen.filter((other) => other !== key) : [...chosen, key].slice(-2));
  };
  return (
    <main class="main screen" data-testid="files-screen">
      <div class="screen-head">
        <h1>Files</h1>
        <p class="muted">{isLocal ? LOCAL : `read by ${location.host} and forgotten; stored only when you ask for it`}</p>
        {files.length > 1 && <CompareButton sides={sides} />}
      </div>
      <div class="screen-body">
        <Consent />
        <NotOpen />
        <Chooser isAlone={files.length === 0} />
        {files.length > 0 && (
          <table class="wide-table files-table">
            <thead>
              <tr>
                <th scope="col">
                  <span class="visually-hidden">Compare</span>
                </th>
                {["File", "Format", "What is in it", "Stacks", "Time"].map((title) => (
                  <th key={title} scope="col">
                    {title}
                  </th>
                ))}
                <th scope="col">
                  <span class="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            {files.map((file) => (
              <FileRow key={file.key} file={file} side={sideOf(sides, file)} choose={() => choose(file.key)} />
            ))}
          </table>
        )}
        {files.length > 0 && (
          <p class="screen-note muted">
            Files are open in this page only: a reload lets go of them. A link keeps the view, and asks for the file again.
          </p>
        )}
        {!isLocal && <Hint text="To keep a file on your machine:" command="candela open FILE" />}
      </div>
    </main>
  );
}

const LOCAL = "read by the server on this machine: nothing leaves it, and nothing is stored unless you ask for it";

function sideOf(sides: readonly OpenFile[], { key }: OpenFile): "before" | "after" | undefined {
  const at = sides.findIndex((file) => file.key === key);
  return at === -1 ? undefined : at === 0 ? "before" : "after";
}

function Chooser({ isAlone }: { isAlone: boolean }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <div class={`files-chooser${isAlone ? " is-alone" : ""}`}>
      <button type="button" class="primary-button" data-testid="choose-files" onClick={() => input.current?.click()}>
        Choose files
      </button>
      <p class="muted">
        or drop them anywhere on this page: pprof, JFR, perf.data, folded stacks, speedscope, Firefox, Chrome, callgrind and more; the
        content tells the format, and <code>candela formats</code> lists them all
      </p>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Profile files"
        data-testid="file-input"
        onChange={(event) => {
          receiveFiles([...(event.currentTarget.files ?? [])]);
          // Choosing the same file once more is another choice.
          event.currentTarget.value = "";
        }}
      />
    </div>
  );
}

function CompareButton({ sides }: { sides: readonly OpenFile[] }) {
  const [before, after] = sides;
  const type = before?.about && after?.about ? commonType(before.about, after.about) : undefined;
  const isReady = before?.about && after?.about && type !== undefined;
  return (
    <button
      type="button"
      class="primary-button files-compare"
      data-testid="compare-files"
      disabled={!isReady}
      title={whyNot(sides, type)}
      onClick={() => {
        if (before?.about && after?.about && type !== undefined) compare(before, before.about, after, after.about, type);
      }}
    >
      {isReady ? `Compare ${before.content.name} with ${after.content.name}` : "Choose two to compare"}
    </button>
  );
}

function whyNot(sides: readonly OpenFile[], type: string | undefined): string {
  if (sides.length < 2) return "The one that is chosen first is before";
  return type === undefined ? "They have no profile type in common" : "Before, and after";
}

function compare(before: OpenFile, aboutBefore: FileAbout, after: OpenFile, aboutAfter: FileAbout, type: string): void {
  update({
    ...viewOfFile(aboutAfter, after.content.name),
    screen: "compare",
    type,
    baseFile: printFileReference({ id: aboutBefore.id, name: before.content.name }),
  });
}

/** Before the first file leaves the machine. */
function Consent() {
  const send = useRef<HTMLButtonElement>(null);
  const waiting = waitingFiles.value;
  useEffect(() => {
    if (waiting.length > 0) send.current?.focus();
  }, [waiting]);
  if (waiting.length === 0) return null;
  const names = waiting.map(({ name }) => name).join(", ");
  return (
    <section class="files-consent" aria-label="Send files" data-testid="files-consent">
      <p>
        <strong class="truncated">{names}</strong>
      </p>
      <p>
        Opening sends {waiting.length === 1 ? "the file" : "the files"} to <strong>{location.host}</strong>, which reads and forgets{" "}
        {waiting.length === 1 ? "it" : "them"}; nothing is stored.
      </p>
      <div class="state-actions">
        <button ref={send} type="button" class="primary-button" data-testid="send-files" onClick={sendWaiting}>
          Send and open
        </button>
        <button type="button" class="secondary-button" onClick={() => (waitingFiles.value = [])}>
          Cancel
        </button>
      </div>
      <Hint text="On your machine alone:" command={`candela open ${waiting.length === 1 ? (waiting[0]?.name ?? "FILE") : "FILE…"}`} />
    </section>
  );
}

/** The address is about a file that this page does not have. */
function NotOpen() {
  const file = lookedAtFile.value;
  if (!file || openFileOf(file.id)) return null;
  return (
    <p class="banner" role="status" data-testid="file-not-open">
      This link is about {file.name}, which is not open here: files stay in the page that opened them. Choose it again, and the view
      comes back.
    </p>
  );
}
