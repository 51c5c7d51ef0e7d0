//! The source without BPF: processes of one's own, every stack walked here.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use candela_ebpf::Options;
use candela_ebpf::Pace;
use candela_ebpf::Target;
use candela_ebpf::TaskCounters;
use candela_ebpf::TaskSampler;
use candela_ebpf::monotonic_ns;

use crate::collector::Collector;
use crate::collector::SourceWork;
use crate::cpu::state::CpuState;
use crate::cpu::view::Naming;
use crate::error::AgentError;
use crate::kinds::Kind;
use crate::kinds::Kinds;
use crate::ledger::DropReason;
use crate::ledger::Ledger;
use crate::status::SourceStatus;
use crate::status::StatusBoard;
use crate::symbolize::Scale;
use crate::windows::WindowId;
use crate::windows::Windows;

/// While samples wait for unwind tables, these are looked for this often.
const POLL_WITH_PENDING: Duration = Duration::from_millis(5);

/// How late the end of the warm-up is noticed.
const WARM_UP_POLL: Duration = Duration::from_millis(20);

/// What runs for a tenth of this at 99 Hz has its tables afterwards.
const SHORTEST_WARM_UP_NS: u64 = 200_000_000;

const LONGEST_WARM_UP_NS: u64 = 3_000_000_000;

/// How long the end waits for tables.
const SETTLE_NS: u64 = 1_000_000_000;

/// Samples what processes do on CPUs by perf events alone.
#[derive(Debug)]
pub(crate) struct TaskCollector {
    sampler: TaskSampler,
    state: CpuState,
    ledger: Arc<Ledger>,
    /// Those of the warm-up.
    of_warm_up: TaskCounters,
}

impl TaskCollector {
    pub(crate) fn start(
        rate_hz: u32,
        target: Target,
        naming: Naming,
        table_budget_bytes: u64,
        board: &StatusBoard,
    ) -> Result<Self, AgentError> {
        let sampler = TaskSampler::start(&Options {
            rate_hz,
            target,
            ..Options::default()
        })?;
        let ledger = Arc::clone(&board.ledger);
        let kinds = Kinds::from([Kind::Cpu]);
        let state = CpuState::new(
            None,
            naming,
            table_budget_bytes,
            kinds,
            Arc::clone(&ledger),
            Arc::clone(&board.clocks),
        )?;
        Ok(Self {
            sampler,
            state,
            ledger,
            of_warm_up: TaskCounters::default(),
        })
    }

    pub(crate) fn sees_kernel(&self) -> bool {
        self.sampler.sees_kernel()
    }

    fn read_counters(&self) {
        let counters = self.sampler.counters();
        let before = &self.of_warm_up;
        let totals = [
            (DropReason::SampleRingFull, counters.lost - before.lost),
            (
                DropReason::SampleLost,
                counters.throttled - before.throttled,
            ),
            (
                DropReason::Compat32Bit,
                counters.compat_tasks - before.compat_tasks,
            ),
            (
                DropReason::RecordUndecodable,
                counters.undecodable - before.undecodable,
            ),
        ];
        for (reason, total) in totals {
            self.ledger.set(reason, total);
        }
    }
}

impl Collector for TaskCollector {
    fn windows(&self) -> Vec<WindowId> {
        vec![WindowId::Kind(Kind::Cpu)]
    }

    fn scale(&self, _window: WindowId) -> Scale {
        let period = i64::try_from(self.sampler.period_ns()).unwrap_or(i64::MAX);
        Scale::of(Kind::Cpu, period)
    }

    fn warm_up(&mut self, _watched: &[u32], stop: &AtomicBool) -> Result<(), AgentError> {
        let mut nobodys = Windows::new(false);
        let start_ns = monotonic_ns();
        let elapsed_ns = || monotonic_ns() - start_ns;
        while !stop.load(Ordering::Relaxed) && elapsed_ns() < LONGEST_WARM_UP_NS {
            self.collect(WARM_UP_POLL, &mut nobodys)?;
            if elapsed_ns() >= SHORTEST_WARM_UP_NS && !self.state.awaits_tables() {
                break;
            }
        }
        self.state.give_up_pending(&mut nobodys);
        self.of_warm_up = self.sampler.counters();
        self.ledger
            .reset(&[DropReason::ProcessGone, DropReason::PendingFull]);
        Ok(())
    }

    fn only_family_of(&mut self, pid: u32) {
        self.state.only_family_of(pid);
    }

    fn has_family_left(&self) -> bool {
        self.state.has_family_left()
    }

    fn starts_at(&mut self, start_ns: u64) -> Result<(), AgentError> {
        self.state.starts_at(start_ns);
        Ok(())
    }

    fn collect(&mut self, timeout: Duration, windows: &mut Windows) -> Result<(), AgentError> {
        let timeout = match self.state.has_pending() {
            true => timeout.min(POLL_WITH_PENDING),
            false => timeout,
        };
        let Self { sampler, state, .. } = self;
        sampler.poll(timeout, &mut |event| state.handle(&event, windows))?;
        state.take_replies(windows);
        Ok(())
    }

    /// Nothing waits here.
    fn close(&mut self, _end_ns: u64, _windows: &mut Windows) -> Result<(), AgentError> {
        Ok(())
    }

    fn settle(&mut self, end_ns: u64, windows: &mut Windows) -> Result<(), AgentError> {
        self.state.ends_at(end_ns);
        let deadline_ns = monotonic_ns() + SETTLE_NS;
        self.collect(Duration::ZERO, windows)?;
        while self.state.has_pending() && monotonic_ns() < deadline_ns {
            self.collect(POLL_WITH_PENDING, windows)?;
        }
        self.state.give_up_pending(windows);
        Ok(())
    }

    fn sweep(&mut self) {
        self.state.sweep();
    }

    fn status(&mut self) -> SourceStatus {
        self.read_counters();
        let samples = self.sampler.counters().samples - self.of_warm_up.samples;
        SourceStatus {
            kernel_samples: samples,
            stack_copies: samples,
            cpus: self.sampler.cpu_count(),
            processes: self.state.processes.len(),
            objects: self.state.processes.objects.len(),
            unwind_tables: self.state.tables.len(),
            ..SourceStatus::default()
        }
    }

    fn work(&self) -> SourceWork {
        SourceWork {
            ticks: self.sampler.counters().samples,
            events: self.state.events,
            programs: Vec::new(),
        }
    }

    /// There are none.
    fn measure_programs(&mut self, _is_on: bool) -> Result<(), AgentError> {
        Ok(())
    }

    fn pace(&self) -> Pace {
        Pace {
            ticks_per_sample: 1,
            off_cpu_mean_ns: 0,
        }
    }

    fn set_pace(&mut self, _pace: Pace) -> Result<(), AgentError> {
        Err(AgentError::FixedPace)
    }
}
