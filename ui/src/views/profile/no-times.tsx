// Why there is no chart, and which commands make one.

import type { ChartHeader } from "../../model/chart.ts";
import { serverOfPage } from "../../model/command.ts";
import { Hint } from "../hint.tsx";
import { NothingHere } from "../nothing-here.tsx";
import { service } from "../store.ts";

export function NoTimes({ header }: { header: ChartHeader }) {
  if (header.untimed === 0) return <NothingHere title="No samples in this range" why={header.hint} testId="no-times" />;
  const server = ` --server ${serverOfPage(document.baseURI)}`;
  return (
    <div class="state no-times" role="status" data-testid="no-times">
      <h2>These samples have no times</h2>
      <p>
        {service.value === undefined ? "Here" : `Of ${service.value}`} only the times of whole profiles are stored: that is what agents send, as it
        costs least. A chart needs the time of each sample. It is stored of
      </p>
      <Hint text="recordings," command={`candela record -d 10s -p PID${server}`} />
      <Hint text="and of agents that are told to keep times:" command="CANDELA_AGENT__TIMESTAMPS=true candela up" />
    </div>
  );
}
