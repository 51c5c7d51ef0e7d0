// How far to trust this picture: how sure its shares are, what of it has no name or no callers, what was lost, what the watching
// costs. Each opens the cause and what helps.

import { computed } from "@preact/signals";
import type { DiffAnswer } from "../model/diff-answer.ts";
import { formatInterval, samplesFor, unnamed } from "../model/precision.ts";
import { agentCpu } from "../model/status-figures.ts";
import { formatCount, formatShare, formatValue } from "../model/units.ts";
import type { Screen } from "../state/schema.ts";
import { sides } from "./compare/compared.ts";
import { Hint } from "./hint.tsx";
import { QualityEntry } from "./quality-entry.tsx";
import { SinceStart } from "./quality-ledger.tsx";
import { flameTree, isStale, lookedAtFile, status, view } from "./store.ts";

/** The share that the interval is told of, and the half width that is enough to judge it. */
const EXAMPLE_SHARE = 0.1;
const GOOD_HALF_WIDTH = 0.01;
const WORRYING_UNNAMED = 0.05;
const LISTED_BINARIES = 5;

/** One walk over the tree for each answer. */
const nameless = computed(() => (flameTree.value ? unnamed(flameTree.value) : undefined));

const WITH_PICTURE: ReadonlySet<Screen> = new Set(["profile", "compare"]);

export function QualityBar() {
  const { screen } = view.value;
  const tree = flameTree.value;
  if (!WITH_PICTURE.has(screen) || !tree || tree.isEmpty || isStale.value) return null;
  const isComparison = screen === "compare";
  return (
    <div class="quality-bar" role="group" aria-label={`Quality of this ${isComparison ? "comparison" : "profile"}`} data-testid="quality-bar">
      {isComparison && sides.value ? <PrecisionOfSides {...sides.value} /> : <Precision samples={tree.header.samples} />}
      <Unnamed />
      {/* What agents here do says nothing of a file. */}
      {!lookedAtFile.value && (
        <>
          <SinceStart />
          <Overhead />
        </>
      )}
    </div>
  );
}

/** A change is no surer than the side with the fewer samples. */
function PrecisionOfSides({ before, after }: Pick<DiffAnswer, "before" | "after">) {
  if (before.samples === null || after.samples === null) return <Precision samples={null} />;
  return (
    <Precision
      samples={Math.min(before.samples, after.samples)}
      counts={`${formatCount(before.samples)} → ${formatCount(after.samples)} samples`}
    />
  );
}

/** `counts` is what there is, where that is more than one number. */
function Precision({ samples, counts }: { samples: number | null; counts?: string }) {
  if (samples === null) {
    return (
      <QualityEntry title="Samples" label="samples unknown" testId="quality-samples">
        <p>What was recorded does not say how many events it stands for, so no interval can be told.</p>
      </QualityEntry>
    );
  }
  const needed = samplesFor(EXAMPLE_SHARE, GOOD_HALF_WIDTH);
  return (
    <QualityEntry
      title="How sure the shares are"
      label={`${counts ?? `${formatCount(samples)} samples`} · ${formatInterval(EXAMPLE_SHARE, samples)}`}
      isWorrying={samples < needed / 10}
      testId="quality-samples"
    >
      <p>
        A function of 10 % is {formatInterval(EXAMPLE_SHARE, samples)}, one of 1 % is {formatInterval(0.01, samples)}: with 95 %
        confidence, of {formatCount(samples)} samples that are taken by chance{counts !== undefined && ", the fewer of both sides"}. Load
        that differs between hosts comes on top.
      </p>
      {samples < needed && (
        <>
          <p>
            For ± 1 % it takes {formatCount(needed)} samples: a longer range, or more samples a second in <code>agent.rate</code>.
          </p>
          <Hint text="For one program, for a minute:" command="candela record -F 999 -d 60s -p PID" />
        </>
      )}
    </QualityEntry>
  );
}

function Unnamed() {
  const found = nameless.value;
  const tree = flameTree.value;
  if (!found || !tree) return null;
  return (
    <QualityEntry
      title="Frames without a name"
      label={found.share === 0 ? "all symbolized" : `${formatShare(found.share, 1)} unsymbolized`}
      isWorrying={found.share > WORRYING_UNNAMED}
      testId="quality-unsymbolized"
    >
      {found.binaries.length === 0 ? (
        <p>Every function in which something was spent has a name.</p>
      ) : (
        <>
          <p>These binaries have no symbols here, so their functions are addresses:</p>
          <ul>
            {found.binaries.slice(0, LISTED_BINARIES).map(({ name, value }) => (
              <li key={name}>
                {name} · {formatValue(value, tree.header.unit)}
              </li>
            ))}
          </ul>
          <Hint text="What is wanted, by build id:" command="candela symbols list" />
          <Hint text="Names for all that is stored:" command="candela symbols upload FILE" />
        </>
      )}
    </QualityEntry>
  );
}

function Overhead() {
  const agents = (status.value.data?.agents ?? []).filter(({ cost }) => cost?.cpu_ppm !== undefined);
  const most = agents.toSorted((left, right) => (right.cost?.cpu_ppm ?? 0) - (left.cost?.cpu_ppm ?? 0))[0];
  if (!most) return null;
  return (
    <QualityEntry title="What the agents cost" label={`agent ${agentCpu(most) ?? ""}`} testId="quality-overhead">
      <ul>
        {agents.map((agent) => (
          <li key={agent.host}>
            {agent.host ?? "?"} · {agentCpu(agent)}
          </li>
        ))}
      </ul>
      <p>
        <code>agent.cpu_budget</code> bounds it, and <code>agent.rate</code> is what it pays for.
      </p>
      <Hint text="By thread and by program in the kernel:" command="candela doctor --agent" />
    </QualityEntry>
  );
}
