// What is removed and added, in the form of the command line.

import { diffLines } from "../../model/fleet.ts";

const TAGS = { place: "span", removed: "del", added: "ins" } as const;

export function DocumentDiff({ text }: { text: string }) {
  return (
    <pre class="document-diff" role="group" aria-label="What changes" data-testid="document-diff">
      {diffLines(text).map(({ kind, text: line }, index) => {
        const Tag = TAGS[kind];
        return <Tag key={index}>{`${line}\n`}</Tag>;
      })}
    </pre>
  );
}
