//! The catalog: which blocks there are, and up to where the log is in them.

mod sqlite;

use std::fmt::Debug;

use crate::block::BlockMeta;
use crate::error::StoreError;

pub(crate) use sqlite::SqliteCatalog;

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

    /// Adds blocks and moves checkpoints, each a writer and the last record that is in blocks.
    /// Adding a block that is there changes nothing.
    fn publish(&self, blocks: &[BlockMeta], checkpoints: &[(&str, u64)]) -> Result<(), StoreError>;

    /// Takes a block out of answers, with the reason.
    fn quarantine(&self, block_id: &str, reason: &str) -> Result<(), StoreError>;

    /// Takes a block back into answers.
    fn release(&self, block_id: &str) -> Result<(), StoreError>;

    /// Marks blocks as deleted at a time in nanoseconds since the Unix epoch.
    fn mark_deleted(&self, block_ids: &[String], now_ns: i64) -> Result<(), StoreError>;

    /// Forgets blocks whose files are gone.
    fn forget(&self, block_ids: &[String]) -> Result<(), StoreError>;
}
