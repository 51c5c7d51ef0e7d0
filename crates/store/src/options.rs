//! How a store is set up.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::storage::Backend;

/// When an append counts as durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// After `fdatasync`: survives a power cut.
    #[default]
    Fsync,
    /// After `write`: survives a crash of the process, not of the machine.
    Os,
}

/// Settings of a [`Store`](crate::Store).
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The directory that holds everything; created when it does not exist.
    pub data_dir: PathBuf,
    /// Where blocks are kept.
    pub backend: Backend,
    /// When an append counts as durable.
    pub sync: SyncMode,
    /// The head is written to blocks when its oldest profile is this old.
    pub flush_interval: Duration,
    /// The head is written to blocks when it holds this many bytes.
    pub flush_bytes: u64,
    /// Appends are refused when the head, which a failing flush cannot empty, holds this many bytes.
    pub max_head_bytes: u64,
    /// Size of a log segment, bytes, which is allocated in advance.
    pub segment_bytes: u64,
    /// Appends are refused when this many bytes wait for the log.
    pub max_queue_bytes: u64,
    /// Bytes of decoded block tables (symbols, stacks, labels) that are kept for the next query.
    pub cache_bytes: u64,
    /// Blocks whose window ended this long ago are deleted; `None` keeps them.
    pub max_age: Option<Duration>,
    /// The oldest blocks are deleted when all together are larger, bytes; `None` keeps them.
    pub max_bytes: Option<u64>,
    /// The oldest blocks are deleted when all together take a larger share of the volume, percent;
    /// `None` keeps them.
    pub max_volume_percent: Option<u8>,
    /// Whether blocks also hold each stack as a list of function names, which people and other
    /// engines read; the bytes of the stacks about double.
    pub readable_stacks: bool,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
}

impl StoreOptions {
    /// The contract's defaults for this directory: `fdatasync`, flush after 60 s or 64 MiB, 14 days
    /// and 50 GB or a fifth of the volume of blocks.
    #[must_use]
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            backend: Backend::Filesystem,
            sync: SyncMode::Fsync,
            flush_interval: Duration::from_secs(60),
            flush_bytes: 64 << 20,
            max_head_bytes: 1 << 30,
            segment_bytes: 64 << 20,
            max_queue_bytes: 256 << 20,
            cache_bytes: 128 << 20,
            max_age: Some(Duration::from_secs(14 * 24 * 3600)),
            max_bytes: Some(50_000_000_000),
            max_volume_percent: Some(20),
            readable_stacks: false,
            clock: Arc::new(SystemClock),
        }
    }
}
