//! What the kernel side counted: samples by result, losses by reason.

use crate::Error;
use crate::bpf_map::BpfMap;
use crate::record_numbers::{
    COUNTER_ARRIVAL_MISSED, COUNTER_COMPAT_TASK, COUNTER_COPIES_LIMITED, COUNTER_FREES_LOST,
    COUNTER_KERNEL_STACK_ERROR, COUNTER_LABELS_CUT, COUNTER_LIFE_RING_FULL, COUNTER_LOST,
    COUNTER_NOT_DEFERRED, COUNTER_OFF_CPU_SAMPLES, COUNTER_RESULT_FIRST, COUNTER_RESULT_LAST,
    COUNTER_RING_FULL, COUNTER_SAMPLES, COUNTER_SHORT_WAIT_NS, COUNTER_SHORT_WAITS,
    COUNTER_STACK_COPIES, COUNTER_TARGETS_FULL, COUNTER_TICKS, COUNTER_TRACE_CONTEXT_UNREAD,
    COUNTER_UNKNOWN_PROCESS, COUNTER_USER_FRAMES, COUNTER_WAKER_STACKS_LOST,
};
use candela_unwind::WalkResult;
use std::io;

/// How many result codes there are.
pub(crate) const RESULTS: usize = (COUNTER_RESULT_LAST - COUNTER_RESULT_FIRST + 1) as usize;

/// Totals since the start; they only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Samples taken, on and off CPU, whether or not they reached us.
    pub samples: u64,
    /// Ticks of the clock of CPUs that were busy with what is sampled; samples, and those that a
    /// [`Pace`](crate::Pace) leaves out.
    pub ticks: u64,
    /// Samples by how their walk ended, indexed by [`WalkResult`].
    pub results: [u64; RESULTS],
    /// User frames walked in the kernel.
    pub user_frames: u64,
    /// Samples dropped because the ring buffer was full, for each possible CPU.
    pub ring_full_by_cpu: Vec<u64>,
    /// Fork and exit events dropped because their ring buffer was full.
    pub life_ring_full: u64,
    /// Side-band records (exec, mapping) that the kernel dropped.
    pub sideband_lost: u64,
    /// Samples that came with registers and a stack copy.
    pub stack_copies: u64,
    /// Samples whose stack copy was refused by the rate limit of their process.
    pub copies_limited: u64,
    /// Samples of processes whose mappings were not known.
    pub unknown_process: u64,
    /// Samples of 32-bit processes, which are not walked.
    pub compat_tasks: u64,
    /// Samples in the kernel without kernel frames.
    pub kernel_stack_errors: u64,
    /// Records of a layout we do not know: a defect of ours.
    pub undecodable: u64,
    /// Samples given up before they were taken: registers that cannot be read.
    pub lost: u64,
    /// Processes that are not sampled although they were forked by a target: there are too many.
    pub targets_full: u64,
    /// Of `samples`, those of time off CPU.
    pub off_cpu_samples: u64,
    /// Of these, those without a user stack because they could not wait for it.
    pub not_deferred: u64,
    /// Of these, those without any stack because the switch to their thread was not seen.
    pub arrival_missed: u64,
    /// Samples that do not tell their trace although their process says where: it could not be read.
    pub trace_context_unread: u64,
    /// Samples that do not tell all labels of their thread: there are too many, or too long ones.
    pub labels_cut: u64,
    /// Ends of sampled allocations dropped because the ring buffer was full.
    pub frees_lost: u64,
    /// Waits that do not tell the stack of who ended them because there was no room for it.
    pub waker_stacks_lost: u64,
    /// Waits that are no samples because they were shorter than [`Waits::least_ns`](crate::Waits::least_ns).
    pub short_waits: u64,
    /// How long these were together, nanoseconds.
    pub short_wait_ns: u64,
    /// Hits that the kernel refused because the program ran on that CPU already.
    pub recursion_misses: u64,
}

/// The map of the counters.
#[derive(Debug)]
pub(crate) struct CounterMap {
    map: BpfMap,
    possible_cpus: usize,
}

// === impl CounterMap ===

impl CounterMap {
    pub(crate) fn new(map: BpfMap) -> Result<CounterMap, Error> {
        let possible_cpus = libbpf_rs::num_possible_cpus().map_err(|error| Error::System {
            action: "count the CPUs",
            source: io::Error::other(error),
        })?;
        Ok(CounterMap { map, possible_cpus })
    }

    pub(crate) fn possible_cpus(&self) -> usize {
        self.possible_cpus
    }

    /// What the programs counted; what is counted elsewhere is zero.
    pub(crate) fn read(&self) -> Result<Counters, Error> {
        let mut per_cpu = vec![0; self.possible_cpus];
        let mut sum = |index| -> Result<u64, Error> {
            self.map.lookup_per_cpu(index, &mut per_cpu)?;
            Ok(per_cpu.iter().sum())
        };
        let mut results = [0; RESULTS];
        for (code, result) in (0..).zip(&mut results) {
            *result = sum(COUNTER_RESULT_FIRST + code)?;
        }
        Ok(Counters {
            samples: sum(COUNTER_SAMPLES)?,
            ticks: sum(COUNTER_TICKS)?,
            results,
            user_frames: sum(COUNTER_USER_FRAMES)?,
            life_ring_full: sum(COUNTER_LIFE_RING_FULL)?,
            stack_copies: sum(COUNTER_STACK_COPIES)?,
            copies_limited: sum(COUNTER_COPIES_LIMITED)?,
            unknown_process: sum(COUNTER_UNKNOWN_PROCESS)?,
            compat_tasks: sum(COUNTER_COMPAT_TASK)?,
            kernel_stack_errors: sum(COUNTER_KERNEL_STACK_ERROR)?,
            lost: sum(COUNTER_LOST)?,
            targets_full: sum(COUNTER_TARGETS_FULL)?,
            off_cpu_samples: sum(COUNTER_OFF_CPU_SAMPLES)?,
            not_deferred: sum(COUNTER_NOT_DEFERRED)?,
            arrival_missed: sum(COUNTER_ARRIVAL_MISSED)?,
            trace_context_unread: sum(COUNTER_TRACE_CONTEXT_UNREAD)?,
            labels_cut: sum(COUNTER_LABELS_CUT)?,
            frees_lost: sum(COUNTER_FREES_LOST)?,
            waker_stacks_lost: sum(COUNTER_WAKER_STACKS_LOST)?,
            short_waits: sum(COUNTER_SHORT_WAITS)?,
            short_wait_ns: sum(COUNTER_SHORT_WAIT_NS)?,
            ring_full_by_cpu: {
                self.map.lookup_per_cpu(COUNTER_RING_FULL, &mut per_cpu)?;
                per_cpu
            },
            ..Counters::default()
        })
    }
}

// === impl Counters ===

impl Counters {
    /// How many samples ended with `result`.
    pub fn result(&self, result: WalkResult) -> u64 {
        self.results[result as usize]
    }

    /// What has been counted since `earlier`, which is of the same sampler.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let ring_full = self.ring_full_by_cpu.iter().enumerate();
        let ring_full = ring_full.map(|(cpu, count)| {
            let before = earlier.ring_full_by_cpu.get(cpu);
            count - before.copied().unwrap_or_default()
        });
        Self {
            samples: self.samples - earlier.samples,
            ticks: self.ticks - earlier.ticks,
            results: std::array::from_fn(|result| self.results[result] - earlier.results[result]),
            user_frames: self.user_frames - earlier.user_frames,
            ring_full_by_cpu: ring_full.collect(),
            life_ring_full: self.life_ring_full - earlier.life_ring_full,
            sideband_lost: self.sideband_lost - earlier.sideband_lost,
            stack_copies: self.stack_copies - earlier.stack_copies,
            copies_limited: self.copies_limited - earlier.copies_limited,
            unknown_process: self.unknown_process - earlier.unknown_process,
            compat_tasks: self.compat_tasks - earlier.compat_tasks,
            kernel_stack_errors: self.kernel_stack_errors - earlier.kernel_stack_errors,
            undecodable: self.undecodable - earlier.undecodable,
            lost: self.lost - earlier.lost,
            targets_full: self.targets_full - earlier.targets_full,
            off_cpu_samples: self.off_cpu_samples - earlier.off_cpu_samples,
            not_deferred: self.not_deferred - earlier.not_deferred,
            arrival_missed: self.arrival_missed - earlier.arrival_missed,
            trace_context_unread: self.trace_context_unread - earlier.trace_context_unread,
            labels_cut: self.labels_cut - earlier.labels_cut,
            frees_lost: self.frees_lost - earlier.frees_lost,
            waker_stacks_lost: self.waker_stacks_lost - earlier.waker_stacks_lost,
            short_waits: self.short_waits - earlier.short_waits,
            short_wait_ns: self.short_wait_ns - earlier.short_wait_ns,
            recursion_misses: self.recursion_misses - earlier.recursion_misses,
        }
    }

    /// Samples dropped because the ring buffer was full, on all CPUs.
    pub fn ring_full(&self) -> u64 {
        self.ring_full_by_cpu.iter().sum()
    }
}
