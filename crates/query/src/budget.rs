//! Keeping count of what a query costs.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use candela_store::Clock;

use crate::error::QueryError;
use crate::query::Budget;

/// What a running query has used.
#[derive(Debug)]
pub(crate) struct Meter {
    budget: Budget,
    clock: Arc<dyn Clock>,
    started_ns: i64,
    bytes: AtomicU64,
    memory: AtomicU64,
}

impl Meter {
    pub(crate) fn start(budget: Budget, clock: Arc<dyn Clock>) -> Self {
        Self {
            budget,
            started_ns: clock.now_ns(),
            clock,
            bytes: AtomicU64::new(0),
            memory: AtomicU64::new(0),
        }
    }

    /// Counts bytes about to be read.
    pub(crate) fn read(&self, bytes: u64) -> Result<(), QueryError> {
        let needed = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        within("bytes read", self.budget.max_bytes, needed)
    }

    /// Counts bytes about to be allocated; they count until the query ends.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<(), QueryError> {
        let bytes = bytes as u64;
        let needed = self.memory.fetch_add(bytes, Ordering::Relaxed) + bytes;
        within("bytes of memory", self.budget.max_memory, needed)
    }

    /// Looks at the clock.
    pub(crate) fn check_time(&self) -> Result<(), QueryError> {
        let elapsed_ns = self.clock.now_ns().saturating_sub(self.started_ns);
        let allowed = u64::try_from(self.budget.max_time.as_nanos()).unwrap_or(u64::MAX);
        within(
            "nanoseconds",
            allowed,
            u64::try_from(elapsed_ns).unwrap_or(0),
        )
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
