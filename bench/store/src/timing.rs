//! The best of several runs: other work on the machine only ever adds.

use std::time::Duration;
use std::time::Instant;

use crate::ALLOCATOR;

const REPEATS: usize = 9;

/// What one run takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) time: Duration,
    /// Of the run with fewest.
    pub(crate) allocations: usize,
}

impl Cost {
    pub(crate) fn milliseconds(self) -> f64 {
        self.time.as_secs_f64() * 1e3
    }
}

/// Runs the work several times.
pub(crate) fn best<E>(mut work: impl FnMut() -> Result<(), E>) -> Result<Cost, E> {
    let mut best = Cost {
        time: Duration::MAX,
        allocations: usize::MAX,
    };
    for _ in 0..REPEATS {
        let before = ALLOCATOR.stats().allocations;
        let start = Instant::now();
        work()?;
        best.time = best.time.min(start.elapsed());
        let allocations = ALLOCATOR.stats().allocations - before;
        best.allocations = best.allocations.min(allocations);
    }
    Ok(best)
}
