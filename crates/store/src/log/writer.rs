//! The one thread that writes the log.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use candela_model::Profile;
use tokio::sync::oneshot;

use super::Queue;
use super::Sequence;
use super::segment;
use super::segment::HEADER_BYTES;
use super::segment::SegmentHeader;
use crate::duplicates::Ticket;
use crate::error::AppendError;
use crate::error::is_disk_full;
use crate::options::SyncMode;

/// How long a batch waits for company, when there was company before.
const LINGER: Duration = Duration::from_millis(2);
/// A batch of this size waits for nobody.
const ENOUGH_BYTES: u64 = 1 << 20;

/// A profile on its way to the log.
#[derive(Debug)]
pub(crate) struct PendingAppend {
    pub(crate) tenant: String,
    pub(crate) profile: Profile,
    /// The record, ready to be written.
    pub(crate) record: Vec<u8>,
    /// Where its key is reserved, if it has one. It is here and not with whoever waits, who may go
    /// away while the record becomes durable all the same.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) done: oneshot::Sender<Result<(), AppendError>>,
}

/// What the writer shares with the rest of the store.
#[derive(Debug, Default)]
pub(crate) struct LogCounters {
    /// Bytes of all segments up to their last record.
    pub(crate) bytes: AtomicU64,
    /// Batches written, which is how often `fdatasync` ran.
    pub(crate) batches: AtomicU64,
    /// Set to have the next batch start a new segment, so that the old ones can be deleted.
    pub(crate) is_rotation_wanted: AtomicBool,
}

impl LogCounters {
    /// Counts bytes that were deleted. A segment whose writing failed may be longer than what was
    /// counted of it.
    pub(crate) fn shrink(&self, bytes: u64) {
        let shrunk = |counted: u64| Some(counted.saturating_sub(bytes));
        let updated = (self.bytes).fetch_update(Ordering::Relaxed, Ordering::Relaxed, shrunk);
        debug_assert!(updated.is_ok(), "the closure always gives a value");
    }
}

/// The open end of the log.
#[derive(Debug)]
pub(crate) struct LogWriter {
    pub(crate) directory: PathBuf,
    pub(crate) sync: SyncMode,
    pub(crate) segment_bytes: u64,
    pub(crate) writer_id: u64,
    pub(crate) next_sequence: Sequence,
    pub(crate) counters: Arc<LogCounters>,
    /// `None` before the first batch, and after a failure: the state of a file whose sync failed
    /// is not known, so nothing is written behind it.
    pub(crate) open_segment: Option<OpenSegment>,
}

/// The segment that is written to.
#[derive(Debug)]
pub(crate) struct OpenSegment {
    file: File,
    first_sequence: Sequence,
    length: u64,
}

impl LogWriter {
    /// Writes batches until the queue is closed and empty. `apply` makes a durable profile visible;
    /// after that it is acknowledged.
    pub(crate) fn run(
        mut self,
        queue: &Queue<PendingAppend>,
        mut apply: impl FnMut(Sequence, &str, &Profile),
    ) {
        let mut linger = Duration::ZERO;
        while let Some(batch) = queue.take_batch(linger, ENOUGH_BYTES) {
            // A client that waits for each answer before it sends the next gains nothing from
            // lingering; with several at once one sync serves all.
            linger = if batch.len() > 1 {
                LINGER
            } else {
                Duration::ZERO
            };
            match self.write(&batch) {
                Ok(first) => {
                    for (sequence, append) in (first..).zip(batch) {
                        apply(sequence, &append.tenant, &append.profile);
                        append.ticket.into_iter().for_each(Ticket::durable);
                        // Whoever went away does not want to know.
                        let _ = append.done.send(Ok(()));
                    }
                }
                Err(error) => self.refuse(batch, &error),
            }
        }
        if let Some(segment) = self.open_segment.take() {
            // The rest of the allocation is of no use to anyone; if cutting it fails, replay sees
            // zeros.
            let _ = segment.file.set_len(segment.length);
        }
    }

    /// Makes a batch durable and gives the sequence of its first record.
    fn write(&mut self, batch: &[PendingAppend]) -> io::Result<Sequence> {
        let bytes: Vec<u8> = batch
            .iter()
            .flat_map(|append| append.record.iter().copied())
            .collect();
        let mut segment = self.segment_for(bytes.len() as u64)?;
        if let Err(error) = self.write_into(&segment, &bytes) {
            // The next batch goes to a new segment; this one must not keep half a record which a
            // later replay would take for a torn tail in the middle of the log.
            let cut = segment.file.set_len(segment.length);
            if cut.and_then(|()| segment.file.sync_all()).is_err() {
                tracing::error!(
                    segment = segment.first_sequence,
                    "a failed log write could not be cut back; the segment keeps a torn tail"
                );
            }
            return Err(error);
        }
        segment.length += bytes.len() as u64;
        self.open_segment = Some(segment);
        self.counters
            .bytes
            .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.counters.batches.fetch_add(1, Ordering::Relaxed);
        let first = self.next_sequence;
        self.next_sequence += batch.len() as u64;
        Ok(first)
    }

    fn write_into(&self, segment: &OpenSegment, bytes: &[u8]) -> io::Result<()> {
        segment.file.write_all_at(bytes, segment.length)?;
        match self.sync {
            SyncMode::Fsync => segment.file.sync_data(),
            SyncMode::Os => Ok(()),
        }
    }

    /// The segment to write to, taken out of `self`: the open one if it has room, else a new one.
    fn segment_for(&mut self, bytes: u64) -> io::Result<OpenSegment> {
        let is_rotation_wanted = self
            .counters
            .is_rotation_wanted
            .swap(false, Ordering::AcqRel);
        if let Some(segment) = self.open_segment.take() {
            let is_empty = segment.first_sequence == self.next_sequence;
            let has_room = segment.length + bytes <= self.segment_bytes;
            if is_empty || (has_room && !is_rotation_wanted) {
                return Ok(segment);
            }
            segment.file.set_len(segment.length)?;
            segment.file.sync_all()?;
        }
        let header = SegmentHeader {
            writer_id: self.writer_id,
            first_sequence: self.next_sequence,
        };
        let (_, file) = segment::create(&self.directory, header, self.segment_bytes)?;
        self.counters
            .bytes
            .fetch_add(HEADER_BYTES as u64, Ordering::Relaxed);
        Ok(OpenSegment {
            file,
            first_sequence: self.next_sequence,
            length: HEADER_BYTES as u64,
        })
    }

    fn refuse(&self, batch: Vec<PendingAppend>, error: &io::Error) {
        tracing::error!(directory = %self.directory.display(), %error, "the log cannot be written");
        for append in batch {
            let path = self.directory.clone();
            let refusal = if is_disk_full(error) {
                AppendError::DiskFull { path }
            } else {
                AppendError::Log {
                    path,
                    reason: error.to_string(),
                }
            };
            let _ = append.done.send(Err(refusal));
        }
    }
}
