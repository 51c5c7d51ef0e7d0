//! How many samples an answer is made of.

use crate::run::Run;
use crate::sums::divided;

/// What was taken of the runs of a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// Stored rows. A row is all that was seen of a stack in a window.
    pub(crate) rows: u64,
    /// Samples that the profiler took; `None` when that cannot be told for some of it.
    pub(crate) events: Option<u64>,
}

impl Default for Taken {
    fn default() -> Self {
        Self {
            rows: 0,
            events: Some(0),
        }
    }
}

impl Taken {
    /// Counts everything of a run whose samples are all taken.
    pub(crate) fn add_whole(&mut self, run: &Run) {
        self.add(run, run.row.sample_count.into(), run.row.total);
    }

    /// Counts rows of a run with the sum of their values as they are stored.
    pub(crate) fn add(&mut self, run: &Run, rows: u64, stored_sum: i64) {
        self.rows += rows;
        self.events = match (self.events, run.event_value) {
            (Some(events), Some(value)) => {
                Some(events.saturating_add(divided(stored_sum, value.get()).unsigned_abs()))
            }
            _ => None,
        };
    }

    pub(crate) fn add_all(&mut self, other: Self) {
        self.rows += other.rows;
        let events = self.events.zip(other.events);
        self.events = events.map(|(own, other)| own.saturating_add(other));
    }
}
