//! Keeping count of what a query costs.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use candela_store::Clock;

use crate::cancellation::Cancellation;
use crate::error::QueryError;
use crate::query::Budget;
use crate::query::Query;

/// What a running query has used.
#[derive(Debug)]
pub(crate) struct Meter {
    budget: Budget,
    cancellation: Cancellation,
    clock: Arc<dyn Clock>,
    started_ns: i64,
    bytes: AtomicU64,
    memory: AtomicU64,
}

/// Memory that counts as long as this lives.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    meter: &'a Meter,
    bytes: u64,
}

impl Meter {
    pub(crate) fn start(query: &Query, clock: Arc<dyn Clock>) -> Self {
        Self {
            budget: query.budget,
            cancellation: query.cancellation.clone(),
            started_ns: clock.monotonic_ns(),
            clock,
            bytes: AtomicU64::new(0),
            memory: AtomicU64::new(0),
        }
    }

    /// The time of day, nanoseconds.
    pub(crate) fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    /// Counts bytes about to be read.
    pub(crate) fn read(&self, bytes: u64) -> Result<(), QueryError> {
        let needed = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        within("bytes read", self.budget.max_bytes, needed)
    }

    /// Counts bytes that are allocated until the query ends.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<(), QueryError> {
        let bytes = bytes as u64;
        let needed = self.memory.fetch_add(bytes, Ordering::Relaxed) + bytes;
        within("bytes of memory", self.budget.max_memory, needed)
    }

    /// Counts bytes that are allocated until what is returned is dropped.
    pub(crate) fn hold(&self, bytes: usize) -> Result<Held<'_>, QueryError> {
        let mut held = Held {
            meter: self,
            bytes: 0,
        };
        held.resize(bytes)?;
        Ok(held)
    }

    /// Whether anybody waits for the answer. It costs next to nothing.
    #[inline]
    pub(crate) fn check_cancelled(&self) -> Result<(), QueryError> {
        if self.cancellation.is_cancelled() {
            return Err(QueryError::Cancelled);
        }
        Ok(())
    }

    /// The same, and looks at the clock.
    pub(crate) fn check_time(&self) -> Result<(), QueryError> {
        self.check_cancelled()?;
        let elapsed_ns = self.clock.monotonic_ns().saturating_sub(self.started_ns);
        let allowed = u64::try_from(self.budget.max_time.as_nanos()).unwrap_or(u64::MAX);
        within(
            "nanoseconds",
            allowed,
            u64::try_from(elapsed_ns).unwrap_or(0),
        )
    }
}

impl Held<'_> {
    /// Counts so many bytes instead of those before.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), QueryError> {
        let bytes = bytes as u64;
        if bytes <= self.bytes {
            let released = self.bytes - bytes;
            self.meter.memory.fetch_sub(released, Ordering::Relaxed);
            self.bytes = bytes;
            return Ok(());
        }
        let added = bytes - self.bytes;
        self.bytes = bytes;
        let needed = self.meter.memory.fetch_add(added, Ordering::Relaxed) + added;
        within("bytes of memory", self.meter.budget.max_memory, needed)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.meter.memory.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn within(unit: &'static str, allowed: u64, needed: u64) -> Result<(), QueryError> {
    if needed <= allowed {
        return Ok(());
    }
    Err(QueryError::BudgetExceeded {
        unit,
        allowed,
        needed,
    })
}

#[cfg(test)]
mod tests {
    use candela_store::ManualClock;

    use super::*;

    #[test]
    fn what_is_given_back_may_be_taken_again() {
        let mut query = Query::new("t");
        query.budget.max_memory = 100;
        let meter = Meter::start(&query, Arc::new(ManualClock::at(0)));
        meter.allocate(40).expect("40 of 100");
        for _ in 0..3 {
            let mut held = meter.hold(50).expect("90 of 100");
            held.resize(60).expect("100 of 100");
            assert!(held.resize(61).is_err());
        }
        assert!(meter.hold(61).is_err());
        assert!(meter.hold(60).is_ok());
    }
}
