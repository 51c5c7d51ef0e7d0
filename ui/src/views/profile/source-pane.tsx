// The source of the pinned function with what each line took, its machine code, or both. The values are those of the call path on the
// screen: whoever comes from a box sees what this caller costs.

import { useEffect, useMemo } from "preact/hooks";
import "../../styles/source.css";
import { capitalized } from "../../model/sentence.ts";
import { bothRows, disassemblyRows, sourceRows, type Availability, type CodeRow, type DisassemblyAnswer, type SourceAnswer } from "../../model/source-rows.ts";
import { NothingHere } from "../nothing-here.tsx";
import { update, view } from "../store.ts";
import { ScreenState } from "../screen-state.tsx";
import { TopTable } from "../top-table.tsx";
import { CodeList } from "./code-list.tsx";
import { code, followSource, openedFiles, source, type Answered } from "./source-answer.ts";
import { OpenFile, SourceBar } from "./source-bar.tsx";

export function SourcePane() {
  useEffect(followSource, []);
  const { pinned } = view.value;
  if (pinned === "") {
    return (
      <div class="source-choose">
        <p class="muted" role="status">
          Choose a function to see its lines. In the flame graph and the tree, o opens the source for one call path.
        </p>
        <TopTable />
      </div>
    );
  }
  return (
    <div class="source-pane" data-testid="source">
      <SourceOf name={pinned} />
    </div>
  );
}

function SourceOf({ name }: { name: string }) {
  const { data, error, loading } = source.value;
  // An answer about another function is no answer, not even for a moment.
  if (!data || data.name !== name) return <ScreenState error={error} loading={loading}>{null}</ScreenState>;
  const { answer } = data;
  if (!answer.place) {
    const another = { label: "Another function", act: () => update({ pinned: "" }) };
    return <NothingHere title="Not in this selection" why={answer.hint ?? `No stack has ${name}`} also={[another]} />;
  }
  return <Code asked={data} place={answer.place} />;
}

interface CodeProps {
  asked: Answered<SourceAnswer>;
  place: NonNullable<SourceAnswer["place"]>;
}

function Code({ asked: { key: question, view: shownView, answer }, place }: CodeProps) {
  const { code: choice } = view.value;
  const text = openedFiles.value.get(place.file) ?? answer.source?.text;
  const instructions = code.value.data;
  const disassembly = instructions?.key === question ? instructions.answer : undefined;
  const isWaiting = choice !== "source" && !disassembly;
  const rows = useMemo(
    () => rowsOf({ choice, place, text, disassembly }),
    [choice, place, text, disassembly],
  );
  const hasLines = place.lines.length > 0;
  return (
    <>
      <SourceBar answer={answer} place={place} rows={rows} hasText={text !== undefined} />
      {choice !== "disassembly" && text === undefined && <Missing about={answer.source} file={place.file} />}
      {choice !== "disassembly" && !hasLines && <WithoutLines hint={answer.lines_hint ?? ""} />}
      {choice !== "source" && <WithoutCode about={disassembly?.code ?? null} />}
      {choice !== "source" && disassembly?.code?.state === "found" && (
        <p class="source-note muted">
          Stored profiles keep one address for each line and column: all instructions of a position share its value.
        </p>
      )}
      {isWaiting ? (
        <ScreenState error={code.value.error} loading={code.value.loading || source.value.loading}>
          {null}
        </ScreenState>
      ) : (
        <CodeList
          key={`${shownView} ${choice}`}
          rows={rows}
          hasText={text !== undefined}
          answer={answer}
          place={place}
          isStale={source.value.isStale}
        />
      )}
    </>
  );
}

interface RowsOf {
  choice: "source" | "disassembly" | "both";
  place: NonNullable<SourceAnswer["place"]>;
  text: string | undefined;
  disassembly: DisassemblyAnswer | undefined;
}

function rowsOf({ choice, place, text, disassembly }: RowsOf): CodeRow[] {
  if (choice === "source" || !disassembly) return sourceRows(place, text);
  return choice === "disassembly" ? disassemblyRows(disassembly, text) : bothRows(place, disassembly, text);
}

/** Why there is no text. The values of the lines are there all the same. */
function Missing({ about, file }: { about: Availability | null; file: string }) {
  if (!about) return null;
  return (
    <div class="source-missing" role="status" data-testid="source-missing">
      <p>
        <strong>No source text: {about.message}.</strong> {capitalized(about.hint)}.
      </p>
      <OpenFile file={file} />
    </div>
  );
}

function WithoutLines({ hint }: { hint: string }) {
  return (
    <div class="source-missing" role="status">
      <p>
        <strong>No sample of this function has a line.</strong> {capitalized(hint)}.
      </p>
    </div>
  );
}

function WithoutCode({ about }: { about: Availability | null }) {
  if (!about || about.state === "found") return null;
  return (
    <div class="source-missing" role="status" data-testid="code-missing">
      <p>
        <strong>No machine code: {about.message}.</strong> {capitalized(about.hint)}.
      </p>
    </div>
  );
}
