//! The CPU source: `candela-ebpf` with everything that its samples need.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use candela_ebpf::Counters;
use candela_ebpf::ExplicitEvent;
use candela_ebpf::Options;
use candela_ebpf::Pace;
use candela_ebpf::Sampler;
use candela_ebpf::Target;
use candela_ebpf::Waits;
use candela_ebpf::Wakers;
use candela_ebpf::check_tracepoints;
use candela_ebpf::monotonic_ns;

use crate::allocations::LoadedLibrary;
use crate::collector::Collector;
use crate::collector::SourceWork;
use crate::cost::ThreadClocks;
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
use crate::symbolize::Scale;
use crate::windows::WindowId;
use crate::windows::Windows;

/// The program that takes samples of what runs, in bpf/sampler.bpf.c.
pub(crate) const SAMPLING_PROGRAM: &str = "sample_cpu";

/// What comes of being off a CPU.
const WAITS: [Kind; 3] = [Kind::OffCpu, Kind::Lock, Kind::RunQueue];

/// How many samples of a new process come with a copy of its stack, at low rates.
const STACK_COPY_BURST: u32 = 100;

/// At high rates: as many seconds as the unwind table of the largest binaries takes on a busy host.
/// (Node's takes a fifth of a second here, and the C library's waits for it.)
const STACK_COPY_SECONDS: u32 = 2;

/// With allocations: a program that starts makes as many samples as it allocates half megabytes, and has a gigabyte
/// before the tables of its libraries are there.
const STACK_COPY_BURST_OF_ALLOCATIONS: u32 = 2000;

/// Room for those copies, some kilobytes each, between two looks at them.
const RING_BYTES_OF_ALLOCATIONS: u32 = 16 << 20;

/// The same of the continuous agent, whose services come one by one and share most of their libraries.
const STACK_COPY_BURST_OF_SERVICES: u32 = 500;
const RING_BYTES_OF_SERVICES: u32 = 4 << 20;

/// One page fault of so many gives a stack, which costs as much as dozens of faults.
const FAULT_INTERVAL: u32 = 256;

/// What the C library asks for at a time when its heap grows. Smaller requests are sampled.
/// Where a heap is trimmed and grown again all the time, samples are worth as much more as keeps them few.
const GROWTH_MEAN_BYTES: RangeInclusive<u64> = 128 << 10..=128 << 20;

/// A page: in a recording each request is a sample.
const RECORDED_GROWTH_MEAN_BYTES: RangeInclusive<u64> = 4096..=4096;

/// One block request of so many is sampled in the continuous agent: a disk does ten thousands in a second.
const REQUEST_INTERVAL: u32 = 16;

/// Waits for locks of the kernel are short: a millisecond in all gives a sample.
const LONGEST_KERNEL_LOCK_MEAN_NS: u64 = 1_000_000;

/// What is sampled how often.
#[derive(Clone, Debug)]
pub(crate) struct SamplingPlan {
    pub(crate) rate_hz: u32,
    pub(crate) kinds: Kinds,
    /// What is sampled besides.
    pub(crate) events: Vec<ExplicitEvent>,
    /// What tells of allocations from the start, with that kind.
    pub(crate) allocation_libraries: Vec<LoadedLibrary>,
    /// The time that a sample of waiting stands for at least, nanoseconds; `None` is the sampling period, so
    /// that a thread that always waits gives as many samples as one that always runs.
    pub(crate) wait_mean_ns: Option<u64>,
    /// What waits say of who ended them.
    pub(crate) wakers: Wakers,
    /// Shorter waits are left out, nanoseconds; 0 leaves none out.
    pub(crate) least_wait_ns: u64,
}

/// Settings of the source.
#[derive(Clone, Debug)]
pub(crate) struct CpuOptions {
    pub(crate) plan: SamplingPlan,
    pub(crate) target: Target,
    pub(crate) exclude_self: bool,
    pub(crate) table_budget_bytes: u64,
}

/// Samples what runs on the CPUs and what waits off them.
#[derive(Debug)]
pub(crate) struct CpuCollector {
    sampler: Sampler,
    state: CpuState,
    is_recording: bool,
    kinds: Kinds,
    events: Vec<ExplicitEvent>,
    wait_mean_ns: u64,
    ledger: Arc<Ledger>,
    life_ring_full: u64,
    /// Since the warm-up.
    counters: Counters,
    /// Those of the warm-up.
    of_warm_up: Counters,
    /// Those of the end, after which a recording has no waits.
    at_end: Option<Counters>,
}

// === impl SamplingPlan ===

impl SamplingPlan {
    /// Whether nothing is sampled.
    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.events.is_empty()
    }

    /// Whether each sample is kept, for a while; else it goes on and on.
    fn is_recording(&self) -> bool {
        self.wait_mean_ns.is_none()
    }

    fn wait_mean_ns(&self) -> u64 {
        let period_ns = 1_000_000_000 / u64::from(self.rate_hz.max(1));
        self.wait_mean_ns.unwrap_or(period_ns)
    }

    fn to_kernel(&self, target: Target, exclude_self: bool) -> Options {
        let (rate_hz, kinds) = (self.rate_hz, self.kinds);
        let wait_mean_ns = self.wait_mean_ns();
        let (growth_mean_bytes, request_interval) = match self.is_recording() {
            true => (RECORDED_GROWTH_MEAN_BYTES, 1),
            false => (GROWTH_MEAN_BYTES, REQUEST_INTERVAL),
        };
        let stack_copy_burst = STACK_COPY_BURST.max(rate_hz * STACK_COPY_SECONDS);
        let (stack_copy_burst, sample_ring_bytes) =
            match (kinds.has(Kind::Alloc), self.is_recording()) {
                (false, _) => (stack_copy_burst, None),
                (true, true) => (
                    STACK_COPY_BURST_OF_ALLOCATIONS,
                    Some(RING_BYTES_OF_ALLOCATIONS),
                ),
                (true, false) => (
                    STACK_COPY_BURST_OF_SERVICES.max(stack_copy_burst),
                    Some(RING_BYTES_OF_SERVICES),
                ),
            };
        Options {
            rate_hz,
            on_cpu: kinds.has(Kind::Cpu),
            off_cpu_mean_ns: kinds.has_any(&WAITS).then_some(wait_mean_ns),
            waits: Waits {
                all: kinds.has(Kind::OffCpu),
                locks: kinds.has(Kind::Lock),
                run_queues: kinds.has(Kind::RunQueue),
                wakers: self.wakers,
                least_ns: self.least_wait_ns,
            },
            fault_interval: kinds.has(Kind::Fault).then_some(FAULT_INTERVAL),
            growth_mean_bytes: kinds.has(Kind::Growth).then_some(growth_mean_bytes),
            kernel_lock_mean_ns: kinds
                .has(Kind::KernelLock)
                .then_some(wait_mean_ns.min(LONGEST_KERNEL_LOCK_MEAN_NS)),
            request_interval: kinds.has(Kind::BlockIo).then_some(request_interval),
            events: self.events.clone(),
            allocations: kinds.has(Kind::Alloc),
            target,
            exclude_self,
            stack_copy_burst,
            sample_ring_bytes,
            ..Options::default()
        }
    }

    fn of_ourselves(&self) -> Options {
        let target = Target::Processes {
            pids: vec![std::process::id()],
            follow_forks: false,
        };
        self.to_kernel(target, false)
    }
}

// === impl CpuCollector ===

impl CpuCollector {
    /// Whether the kernel takes a plan: sampling begins with ourselves alone, and ends.
    pub(crate) fn try_plan(plan: &SamplingPlan) -> Result<(), AgentError> {
        let sampler = Sampler::start(&plan.of_ourselves())?;
        if plan.kinds.has(Kind::Alloc) {
            for loaded in &plan.allocation_libraries {
                drop(sampler.watch_allocations(&loaded.library.probes())?);
            }
        }
        Ok(())
    }

    /// Whether the kernel has the tracepoints of a plan, which takes next to no time.
    pub(crate) fn check_tracepoints(plan: &SamplingPlan) -> Result<(), AgentError> {
        check_tracepoints(&plan.of_ourselves())?;
        Ok(())
    }

    pub(crate) fn start(
        options: CpuOptions,
        naming: Naming,
        ledger: Arc<Ledger>,
        clocks: Arc<ThreadClocks>,
    ) -> Result<Self, AgentError> {
        let sampler =
            Sampler::start(&options.plan.to_kernel(options.target, options.exclude_self))?;
        let wait_mean_ns = options.plan.wait_mean_ns();
        let is_recording = options.plan.is_recording();
        let SamplingPlan {
            kinds,
            events,
            allocation_libraries,
            ..
        } = options.plan;
        let kernel = sampler.kernel_tables();
        let mut state = CpuState::new(
            Some(kernel),
            naming,
            options.table_budget_bytes,
            kinds,
            Arc::clone(&ledger),
            clocks,
        )?;
        state.wait_mean_ns = wait_mean_ns;
        if kinds.has(Kind::Alloc) {
            if !is_recording {
                state.follow_services();
                // What has come since they were looked for.
                state.libraries.distrust();
            }
            let pids: Vec<u32> = allocation_libraries
                .iter()
                .filter_map(|it| it.pid)
                .collect();
            // Nothing else may sample processes whose allocations are to be sampled before.
            state.prepare(&pids);
            for loaded in &allocation_libraries {
                let Err(error) = state.libraries.watch(&sampler, loaded) else {
                    continue;
                };
                // One file of many is no reason to do without the others.
                if is_recording || matches!(error, candela_ebpf::Error::ProbesForbidden) {
                    return Err(error.into());
                }
            }
        }
        Ok(Self {
            is_recording,
            sampler,
            state,
            kinds,
            events,
            wait_mean_ns,
            ledger,
            life_ring_full: 0,
            counters: Counters::default(),
            of_warm_up: Counters::default(),
            at_end: None,
        })
    }

    /// Takes samples of what is off CPU, of the time up to `end_ns`.
    fn sample_off_cpu(&mut self, end_ns: u64, windows: &mut Windows) -> Result<(), AgentError> {
        // Each round makes room for the next one.
        while self.sampler.sample_off_cpu(end_ns)? > 0 {
            self.collect(Duration::ZERO, windows)?;
        }
        self.collect(Duration::ZERO, windows)
    }

    /// Takes samples of the page faults up to `end_ns` that none stands for yet.
    fn sample_rest_of_faults(
        &mut self,
        end_ns: u64,
        windows: &mut Windows,
    ) -> Result<(), AgentError> {
        while self.sampler.sample_rest_of_faults(end_ns)? > 0 {
            self.collect(Duration::ZERO, windows)?;
        }
        self.collect(Duration::ZERO, windows)
    }

    fn take_in_use(&mut self, time_ns: u64, windows: &mut Windows) {
        if !self.kinds.has(Kind::Alloc) {
            return;
        }
        if !self.is_recording {
            self.state.heaps.remove_vanished(&mut windows.in_use);
        }
        self.state.take_in_use(time_ns, windows);
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
        let of_waits = self.at_end.as_ref().unwrap_or(counters);
        let totals = [
            (DropReason::SampleRingFull, counters.ring_full()),
            (DropReason::SampleLost, counters.lost),
            (DropReason::RecordUndecodable, counters.undecodable),
            (DropReason::KernelStackFailed, counters.kernel_stack_errors),
            (DropReason::Compat32Bit, counters.compat_tasks),
            (DropReason::TargetsFull, counters.targets_full),
            (DropReason::UserStackMissed, counters.not_deferred),
            (DropReason::ArrivalMissed, counters.arrival_missed),
            (DropReason::ContextUnread, counters.trace_context_unread),
            (
                DropReason::LabelsCut,
                counters.labels_cut + self.state.labels_cut,
            ),
            (DropReason::FreesLost, counters.frees_lost),
            (DropReason::WakerStackLost, counters.waker_stacks_lost),
            (DropReason::ShortWait, of_waits.short_waits),
            (DropReason::ShortWaitTime, of_waits.short_wait_ns),
            (DropReason::LifeRingFull, counters.life_ring_full),
            (DropReason::SidebandLost, counters.sideband_lost),
            (DropReason::RecursionMissed, counters.recursion_misses),
        ];
        for (reason, total) in totals {
            self.ledger.set(reason, total);
        }
        if counters.life_ring_full > self.life_ring_full {
            self.life_ring_full = counters.life_ring_full;
            self.state.processes.remove_vanished();
            self.state.distrust_all();
            let removed = self.sampler.kernel_tables().remove_unannounced_processes();
            if let Err(error) = removed {
                tracing::warn!(%error, "processes that nobody was told of stay in the kernel");
            }
        }
    }
}

impl Polled for CpuCollector {
    fn state(&mut self) -> &mut CpuState {
        &mut self.state
    }

    fn poll(&mut self, timeout: Duration, windows: &mut Windows) -> Result<(), AgentError> {
        let Self { sampler, state, .. } = self;
        sampler.poll(timeout, &mut |event| state.handle(&event, windows))?;
        state.libraries.watch_noticed(sampler);
        Ok(())
    }
}

impl Collector for CpuCollector {
    fn windows(&self) -> Vec<WindowId> {
        let kinds = self.kinds.iter().map(WindowId::Kind);
        let events = (0..)
            .zip(&self.events)
            .map(|(event, _)| WindowId::Event(event));
        kinds.chain(events).collect()
    }

    fn scale(&self, window: WindowId) -> Scale {
        let kind = match window {
            WindowId::Kind(kind) => kind,
            WindowId::Event(event) => return Scale::of_event(&self.events[usize::from(event)]),
        };
        let period = match kind {
            Kind::Cpu => self.sampler.period_ns(),
            Kind::OffCpu => self.wait_mean_ns,
            _ => 1,
        };
        Scale::of(kind, i64::try_from(period).unwrap_or(i64::MAX))
    }

    fn warm_up(&mut self, stop: &AtomicBool) -> Result<(), AgentError> {
        let mut nobodys = Windows::new(false);
        let start_ns = monotonic_ns();
        // Off CPU since the machine started, so that each thread gives a sample now.
        self.sampler.start_off_cpu(1)?;
        self.sample_off_cpu(start_ns, &mut nobodys)?;
        collect_until_tables(self, start_ns, &mut nobodys, stop)?;
        self.sample_rest_of_faults(monotonic_ns(), &mut nobodys)?;
        self.state.give_up_pending(&mut nobodys);
        // What the kernel lost is looked up again now.
        self.read_counters();
        self.of_warm_up = std::mem::take(&mut self.counters);
        self.state.labels_cut = 0;
        self.life_ring_full = 0;
        self.read_counters();
        self.ledger.reset(&[
            DropReason::ProcessGone,
            DropReason::CopyLimited,
            DropReason::PendingFull,
            DropReason::AllocationNotFollowed,
        ]);
        self.state.forget_heaps();
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
        Ok(self.sampler.start_off_cpu(start_ns)?)
    }

    fn collect(&mut self, timeout: Duration, windows: &mut Windows) -> Result<(), AgentError> {
        collect(self, timeout, windows)
    }

    fn close(&mut self, end_ns: u64, windows: &mut Windows) -> Result<(), AgentError> {
        self.sample_off_cpu(end_ns, windows)?;
        self.take_in_use(end_ns, windows);
        Ok(())
    }

    fn settle(&mut self, end_ns: u64, windows: &mut Windows) -> Result<(), AgentError> {
        self.state.ends_at(end_ns);
        self.sample_rest_of_faults(end_ns, windows)?;
        while self.sampler.end_off_cpu(end_ns)? > 0 {
            self.collect(Duration::ZERO, windows)?;
        }
        self.at_end = Some(self.sampler.counters()?.since(&self.of_warm_up));
        collect_rest(self, windows)?;
        self.take_in_use(end_ns, windows);
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
        let kernel = self.state.kernel.as_ref();
        let memory = kernel.map(|it| it.memory().unwrap_or_default());
        let memory = memory.unwrap_or_default();
        SourceStatus {
            kernel_samples: self.counters.samples,
            stack_copies: self.counters.stack_copies,
            cpus: self.sampler.cpu_count(),
            kernel_processes: memory.processes,
            kernel_regions: memory.regions,
            processes: self.state.processes.len(),
            objects: self.state.processes.objects.len(),
            unwind_tables: self.state.tables.len(),
            allocation_libraries: self.state.libraries.len(),
            kernel_tables: memory.tables,
            kernel_table_bytes: memory.table_bytes,
            kernel_other_bytes: memory.other_bytes,
        }
    }

    fn work(&self) -> SourceWork {
        let counters = self.sampler.counters();
        SourceWork {
            // Unreadable counters are in the log, and no work was done since.
            ticks: counters.map_or(self.counters.ticks, |counters| counters.ticks),
            events: self.state.events,
            programs: self.sampler.cost().unwrap_or_default(),
        }
    }

    fn measure_programs(&mut self, is_on: bool) -> Result<(), AgentError> {
        Ok(self.sampler.measure_cost(is_on)?)
    }

    fn pace(&self) -> Pace {
        self.sampler.pace()
    }

    fn set_pace(&mut self, pace: Pace) -> Result<(), AgentError> {
        self.sampler.set_pace(pace)?;
        self.wait_mean_ns = pace.off_cpu_mean_ns;
        // Waits that were weighed by another mean may still be on their way.
        self.state.wait_mean_ns = self.state.wait_mean_ns.max(pace.off_cpu_mean_ns);
        Ok(())
    }
}
