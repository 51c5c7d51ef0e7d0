//! The open end of the log in the data directory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::LogCounters;
use super::LogEnd;
use super::LogFailure;
use super::Patience;
use super::Sequence;
use super::local::LocalSettings;
use super::segment;
use super::segment::HEADER_BYTES;
use super::segment::SegmentHeader;
use crate::error::is_disk_full;
use crate::failpoint::failpoint;
use crate::options::SyncMode;
use crate::space::Shortage;

/// How long a batch waits for company, when there was company before.
const LINGER: Duration = Duration::from_millis(2);
/// A batch of this size waits for nobody.
const ENOUGH_BYTES: u64 = 1 << 20;

/// Writes segments, one batch with one `fdatasync` at a time.
#[derive(Debug)]
pub(super) struct LocalEnd {
    directory: PathBuf,
    writer_id: u64,
    settings: LocalSettings,
    next_sequence: Sequence,
    counters: Arc<LogCounters>,
    /// `None` before the first batch, and after a failure: the state of a file whose sync failed
    /// is not known, so nothing is written behind it.
    open_segment: Option<OpenSegment>,
}

/// The segment that is written to.
#[derive(Debug)]
struct OpenSegment {
    file: File,
    first_sequence: Sequence,
    length: u64,
}

impl LocalEnd {
    pub(super) fn new(
        directory: &Path,
        writer_id: u64,
        settings: LocalSettings,
        next_sequence: Sequence,
        counters: Arc<LogCounters>,
    ) -> Self {
        Self {
            directory: directory.to_owned(),
            writer_id,
            settings,
            next_sequence,
            counters,
            open_segment: None,
        }
    }

    fn write_batch(&mut self, bytes: &[u8]) -> Result<(), LogFailure> {
        let mut segment = self.segment_for(bytes.len() as u64)?;
        if let Err(error) = self.write_into(&segment, bytes) {
            // The next batch goes to a new segment; this one must not keep half a record which a
            // later replay would take for a torn tail in the middle of the log.
            let cut = segment.file.set_len(segment.length);
            if cut.and_then(|()| segment.file.sync_all()).is_err() {
                tracing::error!(
                    segment = segment.first_sequence,
                    "a failed log write could not be cut back; the segment keeps a torn tail"
                );
            }
            return Err(self.failure(&error, bytes.len() as u64));
        }
        segment.length += bytes.len() as u64;
        self.open_segment = Some(segment);
        Ok(())
    }

    fn write_into(&self, segment: &OpenSegment, bytes: &[u8]) -> io::Result<()> {
        failpoint!("log.write.before");
        #[cfg(feature = "failpoints")]
        if crate::failpoint::is_due("log.write.torn") {
            let half = &bytes[..bytes.len() / 2];
            segment.file.write_all_at(half, segment.length)?;
            crate::failpoint::kill();
        }
        segment.file.write_all_at(bytes, segment.length)?;
        failpoint!("log.write.after");
        if self.settings.sync == SyncMode::Fsync {
            segment.file.sync_data()?;
        }
        failpoint!("log.sync.after");
        Ok(())
    }

    /// The segment to write to, taken out of `self`: the open one if it has room, else a new one.
    fn segment_for(&mut self, bytes: u64) -> Result<OpenSegment, LogFailure> {
        let rotation = &self.counters.is_rotation_wanted;
        let is_rotation_wanted = rotation.swap(false, Ordering::AcqRel);
        let open = self.open_segment.as_ref();
        let is_open_usable = open.is_some_and(|segment| {
            let is_empty = segment.first_sequence == self.next_sequence;
            let has_room = segment.length + bytes <= self.settings.segment_bytes;
            is_empty || (has_room && !is_rotation_wanted)
        });
        // What the open segment has room for is allocated, but what is taken must also find room
        // in a block.
        let more_bytes = if is_open_usable {
            0
        } else {
            self.settings.segment_bytes.max(bytes)
        };
        if let Err(shortage) = self.settings.reserve.check(more_bytes) {
            // Still wanted, when there is room again.
            rotation.fetch_or(is_rotation_wanted, Ordering::AcqRel);
            return Err(self.disk_full(shortage));
        }
        self.take_or_create(is_open_usable)
            .map_err(|error| self.failure(&error, more_bytes))
    }

    fn take_or_create(&mut self, is_open_usable: bool) -> io::Result<OpenSegment> {
        if let Some(segment) = self.open_segment.take() {
            if is_open_usable {
                return Ok(segment);
            }
            segment.file.set_len(segment.length)?;
            segment.file.sync_all()?;
        }
        let header = SegmentHeader {
            writer_id: self.writer_id,
            first_sequence: self.next_sequence,
        };
        let segment_bytes = self.settings.segment_bytes;
        let (_, file) = segment::create(&self.directory, header, segment_bytes)?;
        self.counters.grow(HEADER_BYTES as u64);
        Ok(OpenSegment {
            file,
            first_sequence: self.next_sequence,
            length: HEADER_BYTES as u64,
        })
    }

    fn failure(&self, error: &io::Error, more_bytes: u64) -> LogFailure {
        if is_disk_full(error) {
            return self.disk_full(self.settings.reserve.shortage(more_bytes));
        }
        LogFailure::Write {
            place: self.directory.clone(),
            reason: error.to_string(),
        }
    }

    fn disk_full(&self, shortage: Shortage) -> LogFailure {
        LogFailure::DiskFull {
            directory: self.directory.clone(),
            free_bytes: shortage.free_bytes,
            needed_bytes: shortage.needed_bytes,
        }
    }
}

impl LogEnd for LocalEnd {
    /// A client that waits for each answer before it sends the next gains nothing from lingering;
    /// with several at once one sync serves all.
    fn patience(&self, last_batch: usize) -> Patience {
        let had_company = last_batch > 1;
        Patience {
            linger: if had_company { LINGER } else { Duration::ZERO },
            enough_bytes: ENOUGH_BYTES,
        }
    }

    fn append(&mut self, records: &[&[u8]]) -> Result<Sequence, LogFailure> {
        let bytes = records.concat();
        self.write_batch(&bytes)?;
        self.counters.grow(bytes.len() as u64);
        self.counters.batches.fetch_add(1, Ordering::Relaxed);
        let first = self.next_sequence;
        self.next_sequence += records.len() as u64;
        Ok(first)
    }

    fn close(&mut self) {
        if let Some(segment) = self.open_segment.take() {
            // The rest of the allocation is of no use to anyone; if cutting it fails, replay sees
            // zeros.
            let _ = segment.file.set_len(segment.length);
        }
    }
}
