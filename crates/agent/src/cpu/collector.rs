//! The on-CPU source: `candela-ebpf` with everything that its samples need.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
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

/// How many samples of a new process come with a copy of its stack, at low rates.
const STACK_COPY_BURST: u32 = 100;

/// At high rates: as many seconds as the unwind table of the largest binaries takes on a busy host.
/// (Node's takes a fifth of a second here, and the C library's waits for it.)
const STACK_COPY_SECONDS: u32 = 2;

/// While samples wait for the loader, its answers are looked for this often.
const POLL_WITH_PENDING: Duration = Duration::from_millis(5);

/// How long a final flush waits for tables.
const SETTLE_NS: u64 = 1_000_000_000;

/// At 99 Hz what runs for a tenth of this is seen in it; what is not comes with stack copies later.
const SHORTEST_WARM_UP_NS: u64 = 200_000_000;

/// Whoever waits for a recording should not wait for much else.
const LONGEST_WARM_UP_NS: u64 = 3_000_000_000;

/// How late the end of the warm-up is noticed.
const WARM_UP_POLL: Duration = Duration::from_millis(20);

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
    /// Since the warm-up.
    counters: Counters,
    /// Those of the warm-up.
    of_warm_up: Counters,
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
            stack_copy_burst: STACK_COPY_BURST.max(options.rate_hz * STACK_COPY_SECONDS),
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
            counters: Counters::default(),
            of_warm_up: Counters::default(),
        })
    }

    /// Keeps only samples of a process and of those that it will fork. The kernel follows forks of
    /// this process, which may have children that nobody asked for.
    pub(crate) fn only_family_of(&mut self, pid: u32) {
        self.state.only_family_of(pid);
    }

    /// Samples for nobody until what is seen to run has its unwind tables, so that a recording of a
    /// second is as complete as one of a minute. What has no end, such as a host on which programs come
    /// and go, ends after [`LONGEST_WARM_UP_NS`]. Nothing of it is counted.
    pub(crate) fn warm_up(&mut self, stop: &AtomicBool) -> Result<(), AgentError> {
        let mut nobodys = Window::new(false);
        let start_ns = monotonic_ns();
        let elapsed_ns = || monotonic_ns() - start_ns;
        while !stop.load(Ordering::Relaxed) && elapsed_ns() < LONGEST_WARM_UP_NS {
            self.collect(WARM_UP_POLL, &mut nobodys)?;
            if elapsed_ns() >= SHORTEST_WARM_UP_NS && !self.state.awaits_tables() {
                break;
            }
        }
        self.state.give_up_pending(&mut nobodys);
        // What the kernel lost is looked up again now.
        self.read_counters();
        self.of_warm_up = std::mem::take(&mut self.counters);
        self.life_ring_full = 0;
        self.read_counters();
        self.ledger.reset(&[
            DropReason::ProcessGone,
            DropReason::CopyLimited,
            DropReason::PendingFull,
        ]);
        Ok(())
    }

    /// Leaves out what was sampled before.
    pub(crate) fn starts_at(&mut self, start_ns: u64) {
        self.state.starts_at(start_ns);
    }

    fn read_counters(&mut self) {
        match self.sampler.counters() {
            Ok(counters) => self.counters = counters.since(&self.of_warm_up),
            Err(error) => {
                tracing::warn!(%error, "the kernel's counters cannot be read");
                return;
            }
        }
        let counters = &self.counters;
        let totals = [
            (DropReason::SampleRingFull, counters.ring_full()),
            (DropReason::SampleLost, counters.lost),
            (DropReason::RecordUndecodable, counters.undecodable),
            (DropReason::KernelStackFailed, counters.kernel_stack_errors),
            (DropReason::Compat32Bit, counters.compat_tasks),
            (DropReason::TargetsFull, counters.targets_full),
            (DropReason::LifeRingFull, counters.life_ring_full),
            (DropReason::SidebandLost, counters.sideband_lost),
        ];
        for (reason, total) in totals {
            self.ledger.set(reason, total);
        }
        if counters.life_ring_full > self.life_ring_full {
            self.life_ring_full = counters.life_ring_full;
            self.state.processes.remove_vanished();
            self.state.processes.distrust_all();
        }
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

    fn settle(&mut self, end_ns: u64, window: &mut Window) -> Result<(), AgentError> {
        self.state.ends_at(end_ns);
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
        match self.sampler.refresh_cpus() {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "sampling CPUs that came online"),
            Err(error) => tracing::warn!(%error, "a CPU that came online is not sampled"),
        }
    }

    fn status(&mut self) -> SourceStatus {
        self.read_counters();
        let memory = self.state.kernel.memory().unwrap_or_default();
        SourceStatus {
            kernel_samples: self.counters.samples,
            stack_copies: self.counters.stack_copies,
            cpus: self.sampler.cpu_count(),
            kernel_processes: memory.processes,
            kernel_regions: memory.regions,
            processes: self.state.processes.len(),
            objects: self.state.processes.objects.len(),
            unwind_tables: self.state.tables.len(),
            kernel_tables: memory.tables,
            kernel_table_bytes: memory.table_bytes,
            kernel_other_bytes: memory.other_bytes,
        }
    }
}
