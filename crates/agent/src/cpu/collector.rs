//! The on-CPU source: `candela-ebpf` with everything that its samples need.

use std::sync::Arc;
use std::time::Duration;

use candela_ebpf::Counters;
use candela_ebpf::Options;
use candela_ebpf::Sampler;
use candela_ebpf::Target;
use candela_ebpf::monotonic_ns;
use candela_model::ProfileType;

use crate::collector::Collector;
use crate::cpu::state::CpuState;
use crate::error::AgentError;
use crate::labels::Labeler;
use crate::ledger::DropReason;
use crate::ledger::Ledger;
use crate::status::SourceStatus;
use crate::window::Window;

/// While samples wait for the loader, its answers are looked for this often.
const POLL_WITH_PENDING: Duration = Duration::from_millis(5);

/// How long a final flush waits for tables.
const SETTLE_NS: u64 = 1_000_000_000;

/// Settings of the source.
#[derive(Clone, Debug)]
pub(crate) struct CpuOptions {
    pub(crate) rate_hz: u32,
    pub(crate) target: Target,
    pub(crate) exclude_self: bool,
    pub(crate) table_budget_bytes: u64,
}

/// Samples what runs on the CPUs.
#[derive(Debug)]
pub(crate) struct CpuCollector {
    sampler: Sampler,
    state: CpuState,
    ledger: Arc<Ledger>,
    life_ring_full: u64,
}

impl CpuCollector {
    pub(crate) fn start(
        options: CpuOptions,
        labeler: Labeler,
        ledger: Arc<Ledger>,
    ) -> Result<Self, AgentError> {
        let sampler = Sampler::start(&Options {
            rate_hz: options.rate_hz,
            target: options.target,
            exclude_self: options.exclude_self,
            ..Options::default()
        })?;
        let kernel = sampler.kernel_tables();
        let state = CpuState::new(
            kernel,
            labeler,
            options.table_budget_bytes,
            Arc::clone(&ledger),
        )?;
        Ok(Self {
            sampler,
            state,
            ledger,
            life_ring_full: 0,
        })
    }

    /// Keeps only samples of a process and of those that it will fork. The kernel follows forks of
    /// this process, which may have children that nobody asked for.
    pub(crate) fn only_family_of(&mut self, pid: u32) {
        self.state.only_family_of(pid);
    }

    fn counters(&mut self) -> Counters {
        let counters = self.sampler.counters().unwrap_or_else(|error| {
            tracing::warn!(%error, "the kernel's counters cannot be read");
            Counters::default()
        });
        self.ledger
            .set(DropReason::SampleRingFull, counters.ring_full());
        self.ledger
            .set(DropReason::LifeRingFull, counters.life_ring_full);
        self.ledger
            .set(DropReason::SidebandLost, counters.sideband_lost);
        if counters.life_ring_full > self.life_ring_full {
            self.life_ring_full = counters.life_ring_full;
            self.state.processes.remove_vanished();
            self.state.processes.distrust_all();
        }
        counters
    }
}

impl Collector for CpuCollector {
    fn profile_type(&self) -> ProfileType {
        ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds")
    }

    fn period(&self) -> i64 {
        i64::try_from(self.sampler.period_ns()).unwrap_or(i64::MAX)
    }

    fn collect(&mut self, timeout: Duration, window: &mut Window) -> Result<(), AgentError> {
        let timeout = match self.state.has_pending() {
            true => timeout.min(POLL_WITH_PENDING),
            false => timeout,
        };
        let Self { sampler, state, .. } = self;
        sampler.poll(timeout, &mut |event| state.handle(&event, window))?;
        state.take_replies(window);
        Ok(())
    }

    fn settle(&mut self, window: &mut Window) -> Result<(), AgentError> {
        let deadline_ns = monotonic_ns() + SETTLE_NS;
        self.collect(Duration::ZERO, window)?;
        while self.state.has_pending() && monotonic_ns() < deadline_ns {
            self.collect(POLL_WITH_PENDING, window)?;
        }
        self.state.give_up_pending(window);
        Ok(())
    }

    fn sweep(&mut self) {
        self.state.sweep();
    }

    fn status(&mut self) -> SourceStatus {
        let counters = self.counters();
        let memory = self.state.kernel.memory().unwrap_or_default();
        SourceStatus {
            kernel_samples: counters.samples,
            stack_copies: counters.stack_copies,
            processes: self.state.processes.len(),
            objects: self.state.processes.objects.len(),
            unwind_tables: self.state.tables.len(),
            kernel_tables: memory.tables,
            kernel_table_bytes: memory.table_bytes,
            kernel_other_bytes: memory.other_bytes,
        }
    }
}
