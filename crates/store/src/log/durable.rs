//! What the store needs of a log, wherever its segments lie.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::RecordRef;
use super::Replay;
use super::Sequence;
use crate::error::AppendError;
use crate::error::StoreError;

/// Takes each record that is read back.
pub(crate) type Visit<'a> = dyn FnMut(Sequence, RecordRef<'_>) -> Result<(), StoreError> + 'a;

/// Segments of records, each record with a sequence, in a place that outlives the process.
///
/// Its end is written by one thread; everything else may be called from any thread that may block.
pub(crate) trait DurableLog: Debug + Send + Sync {
    /// Tells this log from all others in catalogs and manifests.
    fn writer_id(&self) -> u64;

    /// The sequence with which the oldest readable segment starts; `None` when there is none.
    fn first_sequence(&self) -> Result<Option<Sequence>, StoreError>;

    /// Hands each record from `from` on to `visit`, oldest first.
    fn replay(&self, from: Sequence, visit: &mut Visit<'_>) -> Result<Replay, StoreError>;

    /// The open end, whose next record gets this sequence. There is one at a time.
    fn open_end(&self, next_sequence: Sequence) -> Box<dyn LogEnd>;

    /// Whether what was read from it and written to it is still this process's to make blocks of.
    fn check_owner(&self) -> Result<(), StoreError>;

    /// Deletes segments all of whose records come before `sequence`, never the newest one.
    fn remove_before(&self, sequence: Sequence) -> Result<(), StoreError>;

    /// Sizes and counts.
    fn counters(&self) -> &LogCounters;
}

/// The open end of a log.
pub(crate) trait LogEnd: Debug + Send {
    /// How the next batch may wait for company, when the last one had so many records.
    fn patience(&self, last_batch: usize) -> Patience;

    /// Makes records durable, all or none, and gives the sequence of the first one.
    fn append(&mut self, records: &[&[u8]]) -> Result<Sequence, LogFailure>;

    /// There will be no more.
    fn close(&mut self);
}

/// How long a batch waits for more records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    pub(crate) linger: Duration,
    /// A batch of so many bytes waits for nobody.
    pub(crate) enough_bytes: u64,
}

/// What the end of a log shares with the rest of the store.
#[derive(Debug, Default)]
pub(crate) struct LogCounters {
    /// Bytes of all segments up to their last record.
    pub(crate) bytes: AtomicU64,
    /// Batches written, each of which made all its records durable at once.
    pub(crate) batches: AtomicU64,
    /// Set to have the next batch start a new segment, so that the old ones can be deleted.
    pub(crate) is_rotation_wanted: AtomicBool,
}

/// Why a batch is not in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogFailure {
    /// What is free is kept for what was taken before.
    DiskFull {
        directory: PathBuf,
        free_bytes: u64,
        needed_bytes: u64,
    },
    /// The system or the bucket refused.
    Write { place: PathBuf, reason: String },
    /// Another process writes this log.
    Fenced { segment: PathBuf },
}

impl Patience {
    /// What is there goes.
    pub(crate) fn none() -> Self {
        Self {
            linger: Duration::ZERO,
            enough_bytes: 0,
        }
    }
}

impl LogCounters {
    pub(crate) fn grow(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes that were deleted. A segment whose writing failed may be longer than what was
    /// counted of it.
    pub(crate) fn shrink(&self, bytes: u64) {
        let shrunk = |counted: u64| Some(counted.saturating_sub(bytes));
        let updated = (self.bytes).fetch_update(Ordering::Relaxed, Ordering::Relaxed, shrunk);
        debug_assert!(updated.is_ok(), "the closure always gives a value");
    }
}

impl LogFailure {
    /// What each profile of the batch is answered with.
    pub(crate) fn refusal(&self) -> AppendError {
        match self.clone() {
            Self::DiskFull {
                directory,
                free_bytes,
                needed_bytes,
            } => AppendError::DiskFull {
                path: directory,
                free_bytes,
                needed_bytes,
            },
            Self::Write { place, reason } => AppendError::Log {
                path: place,
                reason,
            },
            Self::Fenced { segment } => AppendError::Fenced { segment },
        }
    }
}
