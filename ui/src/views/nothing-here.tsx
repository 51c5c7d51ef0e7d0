// What stands where there is nothing: the cause, the ways out, and the command that asks the same in a terminal.

import { asSentence } from "../model/sentence.ts";
import { waysOut } from "../model/ways-out.ts";
import { commandOfView } from "./actions.ts";
import { Hint } from "./hint.tsx";
import { hasServer, refresh, update, view } from "./store.ts";

export interface Action {
  label: string;
  act: () => void;
}

interface NothingHereProps {
  title: string;
  /** In the words of whoever knows. */
  why?: string | undefined;
  testId?: string;
  /** In a list or beside one. */
  isSmall?: boolean;
  /** What helps only here, before what helps everywhere. */
  also?: readonly Action[];
  hint?: { text: string; command: string };
}

export function NothingHere({ title, why, testId, isSmall = false, also = [], hint }: NothingHereProps) {
  const ways = waysOut(view.value).map(({ label, patch }) => ({ label, act: () => update(patch) }));
  const { text, command } = hint ?? { text: "The same question in a terminal:", command: commandOfView() };
  return (
    <div class={`state nothing-here${isSmall ? " is-small" : ""}`} role="status" data-testid={testId}>
      <h2>{title}</h2>
      {why !== undefined && <p>{asSentence(why)}</p>}
      {/* A page of one file has nobody to ask anything else. */}
      {hasServer && (
        <>
          <Hint text={text} command={command} />
          <div class="state-actions">
            {[...also, ...ways, { label: "Look again", act: refresh }].map(({ label, act }) => (
              <button type="button" class="secondary-button" key={label} onClick={act}>
                {label}
              </button>
            ))}
          </div>
        </>
      )}
    </div>
  );
}
