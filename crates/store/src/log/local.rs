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
use super::identity;
use super::local_end::LocalEnd;
use super::replay::SegmentName;
use super::replay::SegmentPlace;
use super::replay::has_all_records;
use super::replay::replay_segments;
use super::segment;
use super::segment::ParsedHeader;
use super::segment::remove_segments_before;
use crate::error::StoreError;
use crate::flush::writer_name;
use crate::options::SyncMode;
use crate::space::SpaceReserve;

/// Segments as files of one directory.
#[derive(Debug)]
pub(crate) struct LocalLog {
    directory: PathBuf,
    writer_id: u64,
    /// Whether a segment or the file beside them says so.
    is_id_known: bool,
    /// What the file says.
    noted_id: Option<u64>,
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
    /// The log of this directory, with the id that it has there; `new_id` when there is none.
    pub(crate) fn open(
        directory: &Path,
        settings: LocalSettings,
        new_id: impl FnOnce() -> u64,
    ) -> Result<Self, StoreError> {
        let noted_id = identity::read(directory)?;
        let found = writer_id_of_log(directory, noted_id)?;
        Ok(Self {
            directory: directory.to_owned(),
            writer_id: found.unwrap_or_else(new_id),
            is_id_known: found.is_some(),
            noted_id,
            settings,
            counters: Arc::default(),
        })
    }

    /// Whether anything was ever written to it.
    pub(crate) fn has_segments(&self) -> Result<bool, StoreError> {
        Ok(!self.list()?.is_empty())
    }
}

impl DurableLog for LocalLog {
    fn writer_id(&self) -> u64 {
        self.writer_id
    }

    fn first_sequence(&self) -> Result<Option<Sequence>, StoreError> {
        for segment in self.list()? {
            match segment::read_header(&segment.path)? {
                ParsedHeader::Sound(header) => return Ok(Some(header.first_sequence)),
                ParsedHeader::Broken
                    if self.is_id_known && has_all_records(&self.read(&segment)?) =>
                {
                    return Ok(Some(segment.first_sequence));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn replay(&self, from: Sequence, visit: &mut Visit<'_>) -> Result<Replay, StoreError> {
        let replayed = replay_segments(self, from, visit)?;
        // Before the first segment is made, and not before segments of which nobody knows the log
        // are set aside: with a new id beside them the next start would take them for this log's,
        // and read again what is in blocks.
        if self.noted_id != Some(self.writer_id) {
            identity::write(&self.directory, self.writer_id)?;
        }
        Ok(replayed)
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
        self.is_id_known
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

/// Which log the segments in this directory belong to; `None` when nothing says so.
///
/// The file counts as long as one segment agrees with it or none can be read. Otherwise somebody put
/// the segments of another log here, or restored them without the file, and they are right: a header
/// was written with the records behind it. By the file's id, records would be skipped that no
/// block has, or read that are in blocks already.
fn writer_id_of_log(directory: &Path, noted_id: Option<u64>) -> Result<Option<u64>, StoreError> {
    let mut newest = None;
    for segment in segment::list(directory)?.iter().rev() {
        let ParsedHeader::Sound(header) = segment::read_header(&segment.path)? else {
            continue;
        };
        if noted_id.is_none_or(|noted_id| noted_id == header.writer_id) {
            return Ok(Some(header.writer_id));
        }
        newest = newest.or(Some(header.writer_id));
    }
    if let (Some(newest), Some(noted_id)) = (newest, noted_id) {
        let (segments, noted) = (writer_name(newest), writer_name(noted_id));
        tracing::warn!(
            segments,
            noted,
            "the segments here are of another log than was noted"
        );
    }
    Ok(newest.or(noted_id))
}
