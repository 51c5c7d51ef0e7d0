//! The catalog: which blocks there are, and up to where the log is in them.

mod checkpoints;
mod keys;
mod migrations;
mod sqlite;

use std::fmt::Debug;

use crate::block::BlockMeta;
use crate::duplicates::ReceivedKey;
use crate::error::StoreError;

pub(crate) use sqlite::SqliteCatalog;

/// What becomes true in one transaction when profiles are in blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Publication<'a> {
    pub(crate) blocks: &'a [BlockMeta],
    /// Blocks in whose place these are; they become deleted ones.
    pub(crate) replaced: &'a [String],
    /// When they do, nanoseconds since the Unix epoch.
    pub(crate) now_ns: i64,
    /// Each a writer and the last record of its log that is in blocks.
    pub(crate) checkpoints: &'a [(&'a str, u64)],
    /// What tells these profiles from others that come: the log, which also knows, goes.
    pub(crate) keys: &'a [ReceivedKey],
    /// Keys received before this time are forgotten, nanoseconds since the Unix epoch.
    pub(crate) forget_keys_before_ns: i64,
}

/// One database of block rows and log checkpoints. Each method is one transaction.
pub(crate) trait Catalog: Debug + Send + Sync {
    /// All blocks that are neither deleted nor quarantined, oldest first.
    fn blocks(&self) -> Result<Vec<BlockMeta>, StoreError>;

    /// Blocks that were deleted and whose files may still be there.
    fn deleted_blocks(&self) -> Result<Vec<BlockMeta>, StoreError>;

    /// Blocks that could not be read, with the reason.
    fn quarantined(&self) -> Result<Vec<(BlockMeta, String)>, StoreError>;

    /// The last log record of this writer that is in blocks; 0 for none.
    fn checkpoint(&self, writer_id: &str) -> Result<u64, StoreError>;

    /// Makes heads' profiles those of blocks. Adding a block that is there changes nothing.
    fn publish(&self, publication: &Publication<'_>) -> Result<(), StoreError>;

    /// The keys of profiles in blocks that were received at this time or later, in the order of
    /// the log; some earlier ones may be among them.
    fn keys(&self, since_ns: i64) -> Result<Vec<ReceivedKey>, StoreError>;

    /// Forgets all keys.
    fn forget_keys(&self) -> Result<(), StoreError>;

    /// Takes a block out of answers, with the reason.
    fn quarantine(&self, block_id: &str, reason: &str) -> Result<(), StoreError>;

    /// Takes a block back into answers.
    fn release(&self, block_id: &str) -> Result<(), StoreError>;

    /// Marks blocks as deleted at a time in nanoseconds since the Unix epoch.
    fn mark_deleted(&self, block_ids: &[String], now_ns: i64) -> Result<(), StoreError>;

    /// Marks blocks as deleted and adds those that take their place.
    fn replace(
        &self,
        removed: &[String],
        added: &[BlockMeta],
        now_ns: i64,
    ) -> Result<(), StoreError>;

    /// Puts the new description of a block in the place of the old one; false when the block is not
    /// there any more.
    fn revise(&self, block: &BlockMeta) -> Result<bool, StoreError>;

    /// Leaves nothing of what was forgotten in files.
    fn scrub(&self) -> Result<(), StoreError>;

    /// Forgets blocks whose files are gone.
    fn forget(&self, block_ids: &[String]) -> Result<(), StoreError>;
}
