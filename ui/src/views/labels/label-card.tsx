// One value: its cost, share and change, the shape over the range, and a small flame graph.

import type { LabelCard } from "../../model/label-grid.ts";
import { formatChange, formatShare } from "../../model/units.ts";
import { Sparkline } from "../sparkline.tsx";
import { chartTheme } from "../theme.ts";
import { MiniFlame } from "./mini-flame.tsx";

interface LabelCardProps {
  card: LabelCard;
  label: string;
  /** In the order of cost. */
  rank: number;
  isChosen: boolean;
  choose: () => void;
  open: () => void;
}

export function LabelCardView({ card, label, rank, isChosen, choose, open }: LabelCardProps) {
  const theme = chartTheme.value;
  const color = theme.layers[rank] ?? theme.other;
  const name = card.value === "" ? `without ${label}` : card.value;
  return (
    <li class={`label-card${isChosen ? " is-chosen" : ""}`} data-testid="label-card" data-value={card.value}>
      <div class="label-card-head">
        <span class="swatch" style={{ background: color }} aria-hidden="true" />
        <button type="button" class="row-button" title={`Open the profile of ${label}="${card.value}"`} onClick={open}>
          <span class="truncated">{name}</span>
        </button>
        <label class="card-choice">
          <input type="checkbox" checked={isChosen} aria-label={`Choose ${name} to compare`} onChange={choose} />
        </label>
      </div>
      <div class="label-card-figures">
        <strong>{card.cost}</strong>
        <span class="muted">{formatShare(card.share, 1)}</span>
        {card.pace && (
          <span class="muted" title="Cost per time, against the period before of the same length">
            {formatChange(card.pace.now, card.pace.before)}
          </span>
        )}
        <Sparkline values={card.sparkline} color={color} />
      </div>
      <button type="button" class="mini-flame-button" aria-label={`Flame graph of ${name}`} tabIndex={-1} onClick={open}>
        <MiniFlame label={label} value={card.value} />
      </button>
    </li>
  );
}
