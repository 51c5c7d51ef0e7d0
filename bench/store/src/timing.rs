//! The best of several runs: other work on the machine only ever adds.

use std::time::Duration;
use std::time::Instant;

use rustix::time::ClockId;
use rustix::time::clock_gettime;

use crate::ALLOCATOR;

const REPEATS: usize = 9;

/// What one run takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) time: Duration,
    /// Of all threads: what it takes of a core, also where others want that core.
    pub(crate) core_time: Duration,
    /// Of the run with fewest.
    pub(crate) allocations: usize,
}

impl Cost {
    pub(crate) fn milliseconds(self) -> f64 {
        self.time.as_secs_f64() * 1e3
    }

    pub(crate) fn core_milliseconds(self) -> f64 {
        self.core_time.as_secs_f64() * 1e3
    }
}

/// Runs the work several times.
pub(crate) fn best<E>(mut work: impl FnMut() -> Result<(), E>) -> Result<Cost, E> {
    let mut best = Cost {
        time: Duration::MAX,
        core_time: Duration::MAX,
        allocations: usize::MAX,
    };
    for _ in 0..REPEATS {
        let before = ALLOCATOR.stats().allocations;
        let (start, core_start) = (Instant::now(), core_time());
        work()?;
        best.time = best.time.min(start.elapsed());
        best.core_time = best.core_time.min(core_time().saturating_sub(core_start));
        let allocations = ALLOCATOR.stats().allocations - before;
        best.allocations = best.allocations.min(allocations);
    }
    Ok(best)
}

/// What this process has had of all cores so far.
fn core_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}
