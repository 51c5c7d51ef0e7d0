//! What a store says about itself.

use crate::snapshot::QuarantinedBlock;

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
    /// Bytes of the blocks that cannot be read.
    pub quarantined_bytes: u64,
    /// Blocks that cannot be read.
    pub quarantined: Vec<QuarantinedBlock>,
}
