//! What a query sees: everything that was stored when it began.

use std::sync::Arc;
use std::sync::RwLockReadGuard;

use crate::block::Block;
use crate::head::Head;
use crate::head::HeadProfile;
use crate::head::HeadTables;
use crate::sync::read;

/// A span of time, nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// First moment in it.
    pub from_ns: i64,
    /// First moment behind it.
    pub to_ns: i64,
}

/// An immutable view of one tenant's profiles. Each profile is in exactly one block or head.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Blocks that have profiles in the range, oldest first.
    pub blocks: Vec<Arc<Block>>,
    /// Blocks of sums in the range. What is in them is in `blocks` as well, unless retention has
    /// removed it there: never add up both.
    pub rollups: Vec<Arc<Block>>,
    /// What is not in blocks yet: one head, or two while one is being flushed.
    pub heads: Vec<HeadView>,
    /// Blocks of the range that are left out because they cannot be read.
    pub quarantined: Vec<QuarantinedBlock>,
}

/// The profiles of a head that start in the range.
#[derive(Clone, Debug)]
pub struct HeadView {
    /// The profiles.
    pub profiles: Vec<Arc<HeadProfile>>,
    head: Arc<Head>,
}

/// A block that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantinedBlock {
    /// The block.
    pub block_id: String,
    /// What is wrong with it.
    pub reason: String,
}

impl TimeRange {
    /// All of time.
    pub const ALL: Self = Self {
        from_ns: i64::MIN,
        to_ns: i64::MAX,
    };

    /// Whether a moment is in it.
    #[inline]
    #[must_use]
    pub const fn contains(&self, time_ns: i64) -> bool {
        self.from_ns <= time_ns && time_ns < self.to_ns
    }

    /// Whether any moment from `first_ns` to `last_ns`, both included, is in it.
    #[must_use]
    pub const fn overlaps(&self, first_ns: i64, last_ns: i64) -> bool {
        first_ns < self.to_ns && last_ns >= self.from_ns
    }
}

impl HeadView {
    /// The profiles that start in the range; `None` when there are none.
    pub(crate) fn new(head: &Arc<Head>, range: TimeRange) -> Option<Self> {
        let mut profiles = head.profiles();
        profiles.retain(|profile| range.contains(profile.start_ns));
        (!profiles.is_empty()).then(|| Self {
            profiles,
            head: Arc::clone(head),
        })
    }

    /// The tables that the profiles refer to. Appends wait while this is held, so hold it briefly.
    pub fn tables(&self) -> RwLockReadGuard<'_, HeadTables> {
        read(&self.head.tables)
    }
}
