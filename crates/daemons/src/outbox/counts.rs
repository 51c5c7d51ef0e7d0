//! What became of files.

use std::collections::BTreeMap;

/// Why a file is not in the bucket and never will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// More files waited than may.
    TooManyWaiting,
    /// More bytes waited than may.
    TooManyBytes,
    /// The disk was full, and nothing else was left to remove.
    DiskFull,
    /// The process was killed while it wrote.
    Unfinished,
    /// It could not be written or read for another reason.
    Broken,
}

/// How an outbox is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboxCounts {
    /// Files that are not in the bucket yet.
    pub waiting: u64,
    /// What they take on the disk.
    pub waiting_bytes: u64,
    /// Files that are in the bucket and still on the node.
    pub retained: u64,
    /// Files that went to the bucket since the start.
    pub uploaded: u64,
    /// Files that did not, since the start.
    pub dropped: BTreeMap<DropReason, u64>,
}

impl DropReason {
    /// Every reason.
    pub const ALL: [Self; 5] = [
        Self::TooManyWaiting,
        Self::TooManyBytes,
        Self::DiskFull,
        Self::Unfinished,
        Self::Broken,
    ];

    /// The name in logs and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooManyWaiting => "too_many_waiting",
            Self::TooManyBytes => "too_many_bytes",
            Self::DiskFull => "disk_full",
            Self::Unfinished => "unfinished",
            Self::Broken => "broken",
        }
    }
}

impl OutboxCounts {
    /// All files that did not go to the bucket.
    #[must_use]
    pub fn all_dropped(&self) -> u64 {
        self.dropped.values().sum()
    }
}
