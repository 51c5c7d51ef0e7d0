// One side of a comparison: what is selected, when, and what it costs. The one after is that of the header.

import { useState } from "preact/hooks";
import { BASE_PRESETS, presetTimes } from "../../model/base-range.ts";
import { formatCost, profiledSeconds } from "../../model/cost.ts";
import type { DiffSide } from "../../model/diff-answer.ts";
import { describeSpan, isRelative, timeParameter, type TimeRange } from "../../model/time-range.ts";
import { formatCount } from "../../model/units.ts";
import { clock } from "../clock.ts";
import { FollowedLink } from "../followed-link.tsx";
import { range, shownBase, update, view } from "../store.ts";
import { sides } from "./compared.ts";

export function BeforeSide() {
  const { query, baseQuery } = view.value;
  const shown = shownBase.value;
  return (
    <section class="compare-side is-before" aria-label="Before">
      <div class="compare-row">
        <h2>Before</h2>
        <BaseSelector />
        <Total side={sides.value?.before} />
        {shown && (
          <FollowedLink
            class="link-button"
            testId="open-before"
            patch={{
              screen: "profile",
              query: baseQuery === "" ? query : baseQuery,
              from: String(Math.round(shown.from)),
              to: String(Math.round(shown.to)),
              zoom: "",
              path: "",
            }}
          >
            open this side
          </FollowedLink>
        )}
      </div>
      <div class="compare-row">
        <BaseTimes shown={shown} />
      </div>
    </section>
  );
}

export function AfterSide() {
  const { query } = view.value;
  return (
    <section class="compare-side is-after" aria-label="After">
      <div class="compare-row">
        <h2>After</h2>
        <code class="truncated compare-query" title={`${query}\nChanged in the header above`}>
          {query}
        </code>
        <Total side={sides.value?.after} />
        <FollowedLink class="link-button" testId="open-after" patch={{ screen: "profile", zoom: "", path: "" }}>
          open this side
        </FollowedLink>
      </div>
      <div class="compare-row">
        <span class="muted compare-span">{describeSpan(range.value, view.value.isUtc)}</span>
      </div>
    </section>
  );
}

export function BaseSelector() {
  const [text, setText] = useState<string>();
  const { baseQuery, query } = view.value;
  const commit = (): void => {
    if (text !== undefined) update({ baseQuery: text.trim() === query ? "" : text.trim(), zoom: "" });
    setText(undefined);
  };
  return (
    <input
      class="selector-field mono compare-query"
      aria-label="Label selector of the side before"
      title="Which series are compared with; empty: the same"
      data-testid="base-selector"
      autocomplete="off"
      spellcheck={false}
      placeholder={query}
      value={text ?? baseQuery}
      onInput={(event) => setText(event.currentTarget.value)}
      onBlur={commit}
      onKeyDown={(event) => {
        if (event.key === "Enter") commit();
        else if (event.key === "Escape") setText(undefined);
      }}
    />
  );
}

const OWN = "own";

function BaseTimes({ shown }: { shown: TimeRange | undefined }) {
  const { baseFrom, baseTo } = view.value;
  const known = BASE_PRESETS.findIndex((preset) => {
    const times = presetTimes(preset, range.value);
    return times.baseFrom === baseFrom && times.baseTo === baseTo;
  });
  return (
    <>
      <label class="select-field">
        <span class="visually-hidden">When before</span>
        <select
          data-testid="base-preset"
          value={known === -1 ? OWN : String(known)}
          onChange={(event) => {
            const preset = BASE_PRESETS[Number(event.currentTarget.value)];
            if (preset) update(presetTimes(preset, range.peek()));
            else if (shown) update({ baseFrom: String(Math.round(shown.from)), baseTo: String(Math.round(shown.to)) });
          }}
        >
          {BASE_PRESETS.map(({ title }, index) => (
            <option key={title} value={String(index)}>
              {title}
            </option>
          ))}
          <option value={OWN}>a range of its own</option>
        </select>
      </label>
      {known === -1 ? (
        <>
          <TimeField field="baseFrom" label="Begin of the side before" />
          <TimeField field="baseTo" label="End of the side before" />
        </>
      ) : (
        <span class="muted compare-span">{shown && describeSpan(shown, view.value.isUtc)}</span>
      )}
    </>
  );
}

function TimeField({ field, label }: { field: "baseFrom" | "baseTo"; label: string }) {
  const [text, setText] = useState<string>();
  const value = view.value[field];
  const printed = isRelative(value) || !/^\d+$/.test(value) ? value : clock(Number(value), { date: true });
  const commit = (): void => {
    if (text !== undefined && text.trim() !== "") update({ [field]: timeParameter(text, view.peek().isUtc) });
    setText(undefined);
  };
  return (
    <input
      class="selector-field compare-time"
      aria-label={label}
      data-testid={field === "baseFrom" ? "base-from" : "base-to"}
      autocomplete="off"
      value={text ?? printed}
      onInput={(event) => setText(event.currentTarget.value)}
      onBlur={commit}
      onKeyDown={(event) => event.key === "Enter" && commit()}
    />
  );
}

function Total({ side }: { side: DiffSide | undefined }) {
  const { type = "", unit = "" } = sides.value ?? {};
  if (!side) return null;
  const details = [];
  if (side.samples !== null) details.push(`${formatCount(side.samples)} samples`);
  if (side.total === 0 && side.hint) details.push(side.hint);
  return (
    <span class="compare-total">
      <strong>{formatCost(side.total, { type, unit }, profiledSeconds(side))}</strong>
      <span class="muted">{details.join(" · ")}</span>
    </span>
  );
}
