//! Measures what the agent costs, window by window, and keeps it within its budget.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use candela_ebpf::Pace;
use candela_ebpf::monotonic_ns;

use crate::collector::Collector;
use crate::collector::SourceWork;
use crate::cost::assumed::SAMPLE_NS;
use crate::cost::budget::Budget;
use crate::cost::budget::Step;
use crate::cost::budget::Verdict;
use crate::cost::budget::WindowCost;
use crate::cost::programs::MeasuredPart;
use crate::cost::programs::ProgramTimes;
use crate::cost::programs::ProgramWindow;
use crate::cpu::EventCounts;
use crate::cpu::EventKind;
use crate::cpu::SAMPLING_PROGRAM;
use crate::status::CostStatus;
use crate::status::StatusBoard;

/// Of the run time of the sampling program this much of what is known is of earlier windows: a fortieth of a window has
/// a handful of samples.
const REMEMBERED: f64 = 0.8;

/// Keeps the accounts of the continuous agent.
#[derive(Debug)]
pub(crate) struct CostKeeper {
    board: Arc<StatusBoard>,
    /// Threads whose work grows with the number of samples.
    handlers: &'static [&'static str],
    rate_hz: u32,
    budget: Option<Budget>,
    is_exhausted: bool,
    windows: u64,
    window_start_ns: u64,
    part: MeasuredPart,
    /// Whether the kernel measures run times for us, which takes CAP_SYS_ADMIN.
    can_measure: bool,
    /// Since when it does.
    measured_since_ns: Option<u64>,
    programs: ProgramTimes,
    sample_cost: SampleCost,
    /// At the start of the window.
    thread_times: BTreeMap<&'static str, u64>,
    work: SourceWork,
}

/// What a sample costs in the kernel, of the windows so far.
#[derive(Clone, Copy, Debug, Default)]
struct SampleCost {
    samples: f64,
    run_time_ns: f64,
}

// === impl SampleCost ===

impl SampleCost {
    /// Ticks that are no samples run the program, too, for next to nothing.
    fn add(&mut self, program: ProgramWindow, ticks_per_sample: u32) {
        let samples = program.measured_runs as f64 / f64::from(ticks_per_sample);
        self.samples = self.samples * REMEMBERED + samples;
        self.run_time_ns = self.run_time_ns * REMEMBERED + program.measured_run_time_ns as f64;
    }

    fn of(self, samples: u64) -> u64 {
        let sample_ns = match self.samples == 0.0 {
            true => SAMPLE_NS as f64,
            false => self.run_time_ns / self.samples,
        };
        (sample_ns * samples as f64) as u64
    }
}

// === impl CostKeeper ===

impl CostKeeper {
    /// For a source that samples at `rate_hz`; `budget` is in cores.
    pub(crate) fn new(
        source: &dyn Collector,
        rate_hz: u32,
        budget: Option<f64>,
        handlers: &'static [&'static str],
        board: &Arc<StatusBoard>,
    ) -> Self {
        let pace = source.pace();
        let keeper = Self {
            board: Arc::clone(board),
            handlers,
            rate_hz,
            budget: budget.map(|limit| Budget::new(limit, pace, rate_hz)),
            is_exhausted: false,
            windows: 0,
            window_start_ns: 0,
            part: MeasuredPart::of_window(0, 0, 0),
            can_measure: true,
            measured_since_ns: None,
            programs: ProgramTimes::default(),
            sample_cost: SampleCost::default(),
            thread_times: board.clocks.times(),
            work: source.work(),
        };
        {
            let cost = &mut board.parts().cost;
            cost.configured_rate_millihertz = u64::from(rate_hz) * 1000;
            cost.budget_ppm = budget.map_or(0, millionths);
            keeper.tell_pace(pace, cost);
        }
        keeper
    }

    /// A window begins.
    pub(crate) fn begins(&mut self, start_ns: u64, end_ns: u64) {
        self.window_start_ns = start_ns;
        self.part = MeasuredPart::of_window(self.windows, start_ns, end_ns);
    }

    /// When [`CostKeeper::attend`] should be called next, CLOCK_MONOTONIC in nanoseconds.
    pub(crate) fn next_ns(&self) -> u64 {
        match self.measured_since_ns {
            Some(since_ns) => since_ns + self.part.length_ns,
            None => self.part.begin_ns,
        }
    }

    /// Lets the kernel begin or end to measure, when it is time.
    pub(crate) fn attend(&mut self, source: &mut dyn Collector, now_ns: u64) {
        if now_ns < self.next_ns() {
            return;
        }
        match self.measured_since_ns {
            Some(_) => self.end_measuring(source),
            None => self.begin_measuring(source, now_ns),
        }
    }

    /// The window has ended: what it cost, and with a budget what is sampled from now on.
    pub(crate) fn ends(&mut self, source: &mut dyn Collector, end_ns: u64) {
        let window = self.account(source, end_ns);
        let Some(budget) = &mut self.budget else {
            return;
        };
        match budget.judge(&window) {
            Verdict::Keep => self.is_exhausted = false,
            Verdict::Change(step) => self.change(source, step),
            Verdict::Exhausted(cost) => self.tell_exhausted(cost, source.pace()),
        }
    }

    /// The last window has ended, after which nothing is sampled.
    pub(crate) fn close(&mut self, source: &mut dyn Collector, end_ns: u64) {
        self.account(source, end_ns);
    }

    fn account(&mut self, source: &mut dyn Collector, end_ns: u64) -> WindowCost {
        if self.measured_since_ns.is_some() {
            self.end_measuring(source);
        }
        let work = source.work();
        let window_ns = end_ns.saturating_sub(self.window_start_ns);
        let events = work.events.since(&self.work.events);
        let programs = match self.can_measure {
            true => self.programs.end_window(&work.programs, window_ns),
            false => self.programs.end_assumed_window(&work.programs, &events),
        };
        let thread_times = self.board.clocks.times();
        let window = self.cost_of_window(
            window_ns,
            &work,
            events,
            &programs,
            &thread_times,
            source.pace(),
        );
        self.windows += 1;
        self.work = work;
        self.thread_times = thread_times;
        let all_ns = window.sampling_ns + window.handling_ns + window.other_ns;
        {
            let mut parts = self.board.parts();
            parts.events = self.work.events.by_name();
            parts.cost.programs = self.programs.status();
            parts.cost.cpu_ppm = millionths(all_ns as f64 / window_ns.max(1) as f64);
        }
        window
    }

    fn begin_measuring(&mut self, source: &mut dyn Collector, now_ns: u64) {
        // Not a second time in this window, whatever comes of it.
        self.part.begin_ns = u64::MAX;
        if !self.can_measure {
            return;
        }
        match source.measure_programs(true) {
            Ok(()) => {
                self.programs.begin(&source.work().programs);
                self.measured_since_ns = Some(now_ns);
            }
            Err(error) => {
                tracing::info!(%error, "run times in the kernel are not measured; a sample is taken to cost 15 us there, and each run of a program some 100 ns");
                self.can_measure = false;
                self.board.parts().cost.programs_unmeasured = 1;
            }
        }
    }

    fn end_measuring(&mut self, source: &mut dyn Collector) {
        let Some(since_ns) = self.measured_since_ns.take() else {
            return;
        };
        if let Err(error) = source.measure_programs(false) {
            tracing::debug!(%error, "run times of BPF programs are measured all the time");
        }
        let measured_ns = monotonic_ns().saturating_sub(since_ns);
        self.programs.end(&source.work().programs, measured_ns);
    }

    fn cost_of_window(
        &mut self,
        window_ns: u64,
        work: &SourceWork,
        events: EventCounts,
        programs: &BTreeMap<String, ProgramWindow>,
        thread_times: &BTreeMap<&'static str, u64>,
        pace: Pace,
    ) -> WindowCost {
        let cpu_samples = events.of(EventKind::Cpu);
        if let Some(&program) = programs.get(SAMPLING_PROGRAM) {
            self.sample_cost.add(program, pace.ticks_per_sample);
        }
        // Programs that run on request run in a thread of ours, whose time has them.
        let others = programs
            .iter()
            .filter(|(name, program)| *name != SAMPLING_PROGRAM && !program.runs_on_request);
        let other_programs_ns: u64 = others.map(|(_, program)| program.run_time_ns).sum();
        let mut window = WindowCost {
            window_ns,
            ticks: work.ticks.saturating_sub(self.work.ticks),
            cpu_samples,
            wait_samples: events.of(EventKind::OffCpu),
            allocation_samples: events.of(EventKind::Alloc),
            samples: events.samples(),
            sampling_ns: self.sample_cost.of(cpu_samples),
            handling_ns: 0,
            other_ns: other_programs_ns,
        };
        for (name, time_ns) in thread_times {
            let before_ns = self.thread_times.get(name).copied().unwrap_or_default();
            let spent_ns = time_ns.saturating_sub(before_ns);
            match self.handlers.contains(name) {
                true => window.handling_ns += spent_ns,
                false => window.other_ns += spent_ns,
            }
        }
        window
    }

    fn change(&mut self, source: &mut dyn Collector, step: Step) {
        self.is_exhausted = false;
        let before = source.pace();
        if let Err(error) = source.set_pace(step.pace) {
            tracing::warn!(%error, "the CPU budget is not kept");
            return;
        }
        let is_less = step.cost < step.cost_before;
        let (rate_hz, rate_before_hz) = (self.hertz(step.pace), self.hertz(before));
        let wait_mean = Duration::from_nanos(step.pace.off_cpu_mean_ns);
        tracing::info!(
            rate_hz,
            rate_before_hz,
            ?wait_mean,
            allocations_per_sample = step.pace.allocations_per_sample,
            "{} the agent would cost {:.2} % of a core as before and {:.2} % now",
            match is_less {
                true => "less is sampled, to stay within agent.cpu_budget:",
                false => "more is sampled again, as that costs little:",
            },
            step.cost_before * 100.0,
            step.cost * 100.0,
        );
        let cost = &mut self.board.parts().cost;
        cost.pace_changes += 1;
        self.tell_pace(step.pace, cost);
    }

    /// Once for each time.
    fn tell_exhausted(&mut self, cost: f64, pace: Pace) {
        if std::mem::replace(&mut self.is_exhausted, true) {
            return;
        }
        tracing::warn!(
            rate_hz = self.hertz(pace),
            "agent.cpu_budget is not kept: the agent costs {:.2} % of a core, and to sample less would not help; give it more, or take kinds out of agent.kinds",
            cost * 100.0
        );
    }

    fn tell_pace(&self, pace: Pace, cost: &mut CostStatus) {
        let millihertz = u64::from(self.rate_hz) * 1000;
        cost.rate_millihertz = millihertz / u64::from(pace.ticks_per_sample);
        cost.wait_mean_ns = pace.off_cpu_mean_ns;
        cost.allocations_per_sample = pace.allocations_per_sample.into();
    }

    fn hertz(&self, pace: Pace) -> f64 {
        f64::from(self.rate_hz) / f64::from(pace.ticks_per_sample)
    }
}

fn millionths(cores: f64) -> u64 {
    (cores * 1e6).round() as u64
}
