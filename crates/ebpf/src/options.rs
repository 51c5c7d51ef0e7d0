//! What to sample and how much room to take.

use crate::Error;
use crate::explicit::ExplicitEvent;
#[cfg(doc)]
use crate::explicit::MOST_EXPLICIT_EVENTS;
use std::fs::File;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Slowest and fastest sampling rate, in Hz.
pub const RATE_RANGE_HZ: RangeInclusive<u32> = 1..=1000;

/// The most time that an off-CPU sample may stand for where it was shorter, in nanoseconds.
pub const LONGEST_OFF_CPU_MEAN_NS: u64 = 4_000_000_000;

/// The largest stack copy of one sample, in bytes.
pub const MAX_STACK_COPY_BYTES: u32 = 64 * 1024;

pub(crate) const PAGE_BYTES: u32 = 4096;

/// Settings of a [`Sampler`](crate::Sampler); `Options::default()` samples the whole host at 19 Hz.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Samples per second of each busy CPU, within [`RATE_RANGE_HZ`].
    pub rate_hz: u32,
    /// Sample what runs on CPUs.
    pub on_cpu: bool,
    /// Sample what is off them, too: the time in nanoseconds that one such sample stands for at least,
    /// at most [`LONGEST_OFF_CPU_MEAN_NS`]. Before Linux 6.18 waits outside of system calls have no user stack.
    pub off_cpu_mean_ns: Option<u64>,
    /// Which waits are samples, with `off_cpu_mean_ns`.
    pub waits: Waits,
    /// Count page faults, too: one in so many of a thread gives a stack on average, at least 1.
    pub fault_interval: Option<u32>,
    /// Sample how much memory programs ask for, too: the bytes that one such sample stands for at least, from those of a
    /// first sample to those of a thread that asks a hundred times a second.
    pub growth_mean_bytes: Option<RangeInclusive<u64>>,
    /// Sample waits for locks of the kernel, too: the time in nanoseconds that one such sample stands for at
    /// least, at most [`LONGEST_OFF_CPU_MEAN_NS`].
    pub kernel_lock_mean_ns: Option<u64>,
    /// Sample requests to block devices, too: one of so many, at least 1.
    pub request_interval: Option<u32>,
    /// Sample events that somebody names, too; the first [`MOST_EXPLICIT_EVENTS`] of them.
    pub events: Vec<ExplicitEvent>,
    /// Sample allocations, too, of the libraries that [`Sampler::watch_allocations`](crate::Sampler::watch_allocations) is
    /// told.
    pub allocations: bool,
    /// Whose samples are wanted.
    pub target: Target,
    /// Leave the calling process out.
    pub exclude_self: bool,
    /// How much of the stack is copied when the kernel cannot walk it, in bytes; rounded up to
    /// pages, at most [`MAX_STACK_COPY_BYTES`].
    pub stack_copy_bytes: u32,
    /// How many stack copies a process may cause at once, as when it starts; at least 1.
    pub stack_copy_burst: u32,
    /// How many stack copies a process may cause per second after that; further samples come
    /// without. 0: no copies at all.
    pub stack_copies_per_second: u32,
    /// Size of the sample ring buffer in bytes, rounded up to a power of two. `None`: 1 MiB and
    /// 512 KiB more per CPU.
    pub sample_ring_bytes: Option<u32>,
    /// How many processes can have mappings at a time (allocated as used).
    pub max_processes: u32,
    /// How many executable mappings all processes can have together (32 bytes each, allocated at start).
    pub max_regions: u32,
    /// How many unwind tables can be loaded at a time (16 bytes each, allocated at start).
    pub max_tables: u32,
    /// Ask the kernel for build ids in mapping events, instead of device and inode.
    pub mapped_build_ids: bool,
    /// Let the kernel measure the run time of our programs (costs about 20 ns per sample).
    pub measure_cost: bool,
}

/// Which waits are samples, and what they tell. Each but the first makes a wait cost a little more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// All of them.
    pub all: bool,
    /// Those for locks, and they say for which.
    pub locks: bool,
    /// Those of threads that could run, and they say how much of the time that was.
    pub run_queues: bool,
    /// What all of them tell of the thread that ended them, unless it was an interrupt.
    pub wakers: Wakers,
    /// Shorter ones are no samples: they are counted, with their time. In nanoseconds; 0 leaves none out.
    pub least_ns: u64,
}

/// What waits tell of the thread that ended them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wakers {
    /// Nothing.
    #[default]
    Untold,
    /// Its name.
    Names,
    /// Its name and the stack on which it did.
    Stacks,
}

/// A file with two functions that programs call when an allocation was sampled and when one ends. They get
/// what `candela-preload` says: (address, size, sequence, interval) and (address, sequence).
#[derive(Clone, Copy, Debug)]
pub struct AllocationProbes<'a> {
    /// The shared library.
    pub file: &'a File,
    /// Where the one function begins, as an offset in the file.
    pub sampled: u64,
    /// Where the other does.
    pub freed: u64,
}

/// Whose samples are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Every process and kernel thread.
    Host,
    /// Some processes, by id in the host's pid namespace.
    Processes {
        /// Their ids.
        pids: Vec<u32>,
        /// Also the processes that these fork, and theirs.
        follow_forks: bool,
    },
    /// The processes of a cgroup (v2) and of those below it.
    Cgroup(PathBuf),
}

// === impl Waits ===

impl Waits {
    /// All waits, which tell nothing else.
    pub const ALL: Waits = Waits {
        all: true,
        locks: false,
        run_queues: false,
        wakers: Wakers::Untold,
        least_ns: 0,
    };
}

// === impl Wakers ===

impl Wakers {
    /// As bpf/maps.h numbers them.
    pub(crate) fn to_kernel(self) -> u32 {
        match self {
            Wakers::Untold => 0,
            Wakers::Names => 1,
            Wakers::Stacks => 2,
        }
    }
}

// === impl Options ===

impl Default for Options {
    fn default() -> Options {
        Options {
            rate_hz: 19,
            on_cpu: true,
            off_cpu_mean_ns: None,
            waits: Waits::ALL,
            fault_interval: None,
            allocations: false,
            growth_mean_bytes: None,
            kernel_lock_mean_ns: None,
            request_interval: None,
            events: Vec::new(),
            target: Target::Host,
            exclude_self: false,
            stack_copy_bytes: MAX_STACK_COPY_BYTES,
            stack_copy_burst: 100,
            stack_copies_per_second: 10,
            sample_ring_bytes: None,
            max_processes: 32_768,
            max_regions: 65_536,
            max_tables: 8_192,
            mapped_build_ids: false,
            measure_cost: false,
        }
    }
}

impl Options {
    /// The time between two samples of a busy CPU in nanoseconds: the value of each sample.
    ///
    /// # Errors
    /// [`Error::RateOutOfRange`].
    pub fn period_ns(&self) -> Result<u64, Error> {
        if !RATE_RANGE_HZ.contains(&self.rate_hz) {
            return Err(Error::RateOutOfRange {
                rate_hz: self.rate_hz,
            });
        }
        Ok(1_000_000_000 / u64::from(self.rate_hz))
    }

    /// Whether something is sampled that a thread does itself, at once: see bpf/event_area.h.
    pub(crate) fn has_events(&self) -> bool {
        self.fault_interval.is_some()
            || self.allocations
            || self.growth_mean_bytes.is_some()
            || self.kernel_lock_mean_ns.is_some()
            || self.request_interval.is_some()
            || !self.events.is_empty()
    }

    pub(crate) fn stack_pages(&self) -> u32 {
        self.stack_copy_bytes
            .min(MAX_STACK_COPY_BYTES)
            .div_ceil(PAGE_BYTES)
    }

    pub(crate) fn ring_bytes(&self, cpus: u32) -> u32 {
        let wanted = self
            .sample_ring_bytes
            .unwrap_or_else(|| (1 << 20) + cpus.saturating_mul(512 << 10));
        // Above 2^30 the next power of two would not fit the kernel's limit.
        wanted.clamp(PAGE_BYTES, 1 << 30).next_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_is_exact_and_the_rate_is_bounded() {
        let at = |rate_hz| {
            Options {
                rate_hz,
                ..Options::default()
            }
            .period_ns()
        };
        assert_eq!(at(1000).expect("in range"), 1_000_000);
        assert_eq!(at(19).expect("in range"), 52_631_578);
        assert!(matches!(at(0), Err(Error::RateOutOfRange { rate_hz: 0 })));
        assert!(matches!(
            at(1001),
            Err(Error::RateOutOfRange { rate_hz: 1001 })
        ));
    }

    #[test]
    fn rings_are_powers_of_two() {
        assert_eq!(Options::default().ring_bytes(2), 2 << 20);
        assert_eq!(Options::default().ring_bytes(3), 4 << 20);
        let tiny = Options {
            sample_ring_bytes: Some(1),
            ..Options::default()
        };
        assert_eq!(tiny.ring_bytes(2), PAGE_BYTES);
    }
}
