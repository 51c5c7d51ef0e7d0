//! What a store says about itself.

use std::time::Duration;

use crate::block::Tier;
use crate::snapshot::QuarantinedBlock;

/// What merging did since the store was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionStatus {
    /// Jobs that were done.
    pub jobs: u64,
    /// Jobs that failed; their blocks stay as they are, and the job is tried again.
    pub failed_jobs: u64,
    /// Why the last one failed, if one did.
    pub last_error: Option<String>,
    /// Blocks that were merged.
    pub blocks_read: u64,
    /// Blocks that were made of them.
    pub blocks_written: u64,
    /// Samples that were written.
    pub samples: u64,
}

/// The blocks of one tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierStatus {
    /// Which.
    pub tier: Tier,
    /// How many.
    pub blocks: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Rows of their samples.
    pub samples: u64,
    /// Earliest start of a profile, nanoseconds since the Unix epoch.
    pub oldest_ns: Option<i64>,
    /// How long they are kept; `None` for ever.
    pub max_age: Option<Duration>,
}

/// Counters since the store was opened, and sizes now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// Blocks that answer queries.
    pub blocks: u64,
    /// Bytes of their files.
    pub block_bytes: u64,
    /// Rows of their samples.
    pub block_samples: u64,
    /// Earliest start of a profile in a block, nanoseconds since the Unix epoch.
    pub oldest_ns: Option<i64>,
    /// Samples in memory.
    pub head_samples: u64,
    /// Estimated bytes of the head.
    pub head_bytes: u64,
    /// Bytes of decoded block tables in memory.
    pub cache_bytes: u64,
    /// Bytes in the data directory that are copies of blocks in a bucket.
    pub copied_bytes: u64,
    /// Bytes of the log.
    pub wal_bytes: u64,
    /// How often the log was written and synced.
    pub wal_batches: u64,
    /// Profiles acknowledged.
    pub appended: u64,
    /// Profiles refused, whatever the reason.
    pub refused: u64,
    /// Profiles that had come before and were not stored a second time.
    pub duplicates: u64,
    /// Log records that were read back when the store was opened.
    pub replayed: u64,
    /// Log segments that ended inside a record, which was never acknowledged.
    pub torn_tails: u64,
    /// Log records that the disk lost.
    pub damaged_records: u64,
    /// Flushes that made blocks.
    pub flushes: u64,
    /// Flushes that failed; their profiles stay in memory and in the log.
    pub failed_flushes: u64,
    /// Why the last flush failed, if it did.
    pub last_flush_error: Option<String>,
    /// Blocks that retention deleted.
    pub deleted_blocks: u64,
    /// Why blocks beyond the limits could not be deleted, when the last try failed.
    pub last_retention_error: Option<String>,
    /// What merging in the background did.
    pub compaction: CompactionStatus,
    /// The blocks of each tier.
    pub tiers: Vec<TierStatus>,
    /// Bytes of the blocks that cannot be read.
    pub quarantined_bytes: u64,
    /// Blocks that cannot be read.
    pub quarantined: Vec<QuarantinedBlock>,
}
