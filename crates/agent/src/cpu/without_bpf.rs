//! The source without BPF: processes of one's own, every stack walked here.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use candela_ebpf::Options;
use candela_ebpf::Target;
use candela_ebpf::TaskCounters;
use candela_ebpf::TaskSampler;
use candela_ebpf::monotonic_ns;

use crate::collector::Collector;
use crate::collector::SourceWork;
use crate::cpu::state::CpuState;
use crate::cpu::view::Naming;
use crate::cpu::waiting::Polled;
use crate::cpu::waiting::collect;
use crate::cpu::waiting::collect_rest;
use crate::cpu::waiting::collect_until_tables;
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
                DropReason::SamplingThrottled,
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

impl Polled for TaskCollector {
    fn state(&mut self) -> &mut CpuState {
        &mut self.state
    }

    fn poll(&mut self, timeout: Duration, windows: &mut Windows) -> Result<(), AgentError> {
        let Self { sampler, state, .. } = self;
        Ok(sampler.poll(timeout, &mut |event| state.handle(&event, windows))?)
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

    fn warm_up(&mut self, stop: &AtomicBool) -> Result<(), AgentError> {
        let mut nobodys = Windows::new(false);
        collect_until_tables(self, monotonic_ns(), &mut nobodys, stop)?;
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
        collect(self, timeout, windows)
    }

    fn settle(&mut self, end_ns: u64, windows: &mut Windows) -> Result<(), AgentError> {
        self.state.ends_at(end_ns);
        collect_rest(self, windows)
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
}
