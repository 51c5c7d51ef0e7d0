//! The log in the data directory.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use super::DurableLog;
use super::LogCounters;
use super::LogEnd;
use super::Replay;
use super::Sequence;
use super::Visit;
use super::local_end::LocalEnd;
use super::replay::SegmentName;
use super::replay::SegmentPlace;
use super::replay::replay_segments;
use super::segment;
use super::segment::ParsedHeader;
use super::segment::first_sequence_of_log;
use super::segment::remove_segments_before;
use crate::error::StoreError;
use crate::options::SyncMode;
use crate::space::SpaceReserve;

/// Segments as files of one directory.
#[derive(Debug)]
pub(crate) struct LocalLog {
    directory: PathBuf,
    writer_id: u64,
    /// Whether any segment says that it is of this log.
    is_id_of_segments: bool,
    settings: LocalSettings,
    counters: Arc<LogCounters>,
}

/// How a local log is written.
#[derive(Clone, Debug)]
pub(crate) struct LocalSettings {
    pub(crate) sync: SyncMode,
    /// Allocated in advance for each segment.
    pub(crate) segment_bytes: u64,
    pub(crate) reserve: SpaceReserve,
}

impl LocalLog {
    /// The log of this directory, which has the id of its segments; `new_id` when there is none.
    pub(crate) fn open(
        directory: &Path,
        settings: LocalSettings,
        new_id: impl FnOnce() -> u64,
    ) -> Result<Self, StoreError> {
        let found = writer_id_of_log(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
            writer_id: found.unwrap_or_else(new_id),
            is_id_of_segments: found.is_some(),
            settings,
            counters: Arc::default(),
        })
    }
}

impl DurableLog for LocalLog {
    fn writer_id(&self) -> u64 {
        self.writer_id
    }

    fn first_sequence(&self) -> Result<Option<Sequence>, StoreError> {
        first_sequence_of_log(&self.directory)
    }

    fn replay(&self, from: Sequence, visit: &mut Visit<'_>) -> Result<Replay, StoreError> {
        replay_segments(self, from, visit)
    }

    fn open_end(&self, next_sequence: Sequence) -> Box<dyn LogEnd> {
        Box::new(LocalEnd::new(
            &self.directory,
            self.writer_id,
            self.settings.clone(),
            next_sequence,
            Arc::clone(&self.counters),
        ))
    }

    /// The lock on the data directory sees to that.
    fn check_owner(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn remove_before(&self, sequence: Sequence) -> Result<(), StoreError> {
        let freed = remove_segments_before(&self.directory, sequence)?;
        self.counters.shrink(freed);
        Ok(())
    }

    fn counters(&self) -> &LogCounters {
        &self.counters
    }
}

impl SegmentPlace for LocalLog {
    fn list(&self) -> Result<Vec<SegmentName>, StoreError> {
        segment::list(&self.directory)
    }

    fn read(&self, name: &SegmentName) -> Result<Bytes, StoreError> {
        let content = std::fs::read(&name.path).map_err(StoreError::io("read", &name.path))?;
        Ok(content.into())
    }

    fn is_id_known(&self) -> bool {
        self.is_id_of_segments
    }

    fn has_whole_segments_only(&self) -> bool {
        false
    }

    fn cut(&self, name: &SegmentName, length: u64) -> Result<(), StoreError> {
        segment::cut(&name.path, length)
    }

    fn remove(&self, name: &SegmentName) -> Result<(), StoreError> {
        std::fs::remove_file(&name.path).map_err(StoreError::io("remove", &name.path))
    }

    fn set_aside(&self, name: &SegmentName) -> Result<(), StoreError> {
        let aside = name.path.with_extension("wal.damaged");
        std::fs::rename(&name.path, aside).map_err(StoreError::io("rename", &name.path))
    }
}

/// Which log the segments in this directory belong to; `None` when there is none yet.
fn writer_id_of_log(directory: &Path) -> Result<Option<u64>, StoreError> {
    for segment in segment::list(directory)?.iter().rev() {
        if let ParsedHeader::Sound(header) = segment::read_header(&segment.path)? {
            return Ok(Some(header.writer_id));
        }
    }
    Ok(None)
}
