//! The log in a bucket, for servers whose disk does not outlive them.
//!
//! A segment is an object that is written once, `wal/{writer}/{first sequence}.wal`, and only where
//! there is none: the next free name follows from what is there, so of two processes that write
//! the same log one is told so by the bucket and takes no more profiles. Who starts claims the next
//! name before it reads the log. Whoever wrote it before, and still runs, learns it with its next
//! segment.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;

use super::DurableLog;
use super::LogCounters;
use super::LogEnd;
use super::Replay;
use super::Sequence;
use super::Visit;
use super::object_end::ObjectEnd;
use super::object_segments::FoundSegment;
use super::object_segments::ObjectSegments;
use super::object_tail::Tail;
use super::replay::SegmentName;
use super::replay::SegmentPlace;
use super::replay::has_all_records;
use super::replay::replay_segments;
use super::segment::HEADER_BYTES;
use super::segment::ParsedHeader;
use crate::clock::Clock;
use crate::error::StoreError;
use crate::failpoint::failpoint;
use crate::storage::Bucket;
use crate::sync::lock;

/// Segments as objects of one folder of a bucket.
#[derive(Debug)]
pub(crate) struct ObjectLog {
    writer_id: u64,
    pub(super) segments: ObjectSegments,
    settings: ObjectSettings,
    pub(super) tail: Arc<Mutex<Tail>>,
    counters: Arc<LogCounters>,
}

/// How a log in a bucket is written.
#[derive(Clone, Debug)]
pub(crate) struct ObjectSettings {
    /// Segments begin at least so far apart, unless they are full: each is a request that is paid
    /// for.
    pub(crate) segment_interval: Duration,
    /// Pause after a first failed request; it doubles with each further one.
    pub(crate) retry_pause: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    /// Tells this process from all others that claim the log.
    pub(crate) process_id: u64,
}

impl ObjectLog {
    /// Takes over the log of this writer. `after` is the last of its records that is known to be in
    /// blocks.
    pub(crate) fn open(
        bucket: &Bucket,
        writer_id: u64,
        after: Sequence,
        settings: ObjectSettings,
    ) -> Result<Self, StoreError> {
        let segments = ObjectSegments::new(bucket, writer_id)?;
        let tail = Tail::claim(
            &segments,
            writer_id,
            settings.process_id,
            after,
            settings.retry_pause,
        )?;
        Ok(Self {
            writer_id,
            segments,
            settings,
            tail: Arc::new(Mutex::new(tail)),
            counters: Arc::default(),
        })
    }
}

impl DurableLog for ObjectLog {
    fn writer_id(&self) -> u64 {
        self.writer_id
    }

    fn first_sequence(&self) -> Result<Option<Sequence>, StoreError> {
        for FoundSegment { name, bytes } in self.segments.list()? {
            if bytes < HEADER_BYTES as u64 {
                continue;
            }
            match self.segments.read_header(&name)? {
                ParsedHeader::Sound(header) => return Ok(Some(header.first_sequence)),
                ParsedHeader::Broken if has_all_records(&self.segments.read(&name)?) => {
                    return Ok(Some(name.first_sequence));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn replay(&self, from: Sequence, visit: &mut Visit<'_>) -> Result<Replay, StoreError> {
        let place = ReplayedSegments {
            segments: &self.segments,
            from,
        };
        replay_segments(&place, from, visit)
    }

    fn open_end(&self, next_sequence: Sequence) -> Box<dyn LogEnd> {
        lock(&self.tail).next_sequence = next_sequence;
        Box::new(ObjectEnd::new(
            self.writer_id,
            self.segments.clone(),
            self.settings.clone(),
            Arc::clone(&self.tail),
            Arc::clone(&self.counters),
        ))
    }

    fn check_owner(&self) -> Result<(), StoreError> {
        // While this is held no segment of ours appears.
        lock(&self.tail)
            .check(&self.segments, &self.counters)
            .map(drop)
    }

    fn remove_before(&self, sequence: Sequence) -> Result<(), StoreError> {
        let segments = lock(&self.tail).check(&self.segments, &self.counters)?;
        for pair in segments.windows(2) {
            if pair[1].name.first_sequence > sequence {
                break;
            }
            self.segments.remove(&pair[0].name)?;
            self.counters.shrink(pair[0].bytes);
            failpoint!("log.trim.each");
        }
        Ok(())
    }

    fn counters(&self) -> &LogCounters {
        &self.counters
    }
}

/// Those that hold records from a sequence on: the others are in blocks, and reading costs.
struct ReplayedSegments<'a> {
    segments: &'a ObjectSegments,
    from: Sequence,
}

impl SegmentPlace for ReplayedSegments<'_> {
    fn list(&self) -> Result<Vec<SegmentName>, StoreError> {
        let found = self.segments.list()?.into_iter();
        let names: Vec<SegmentName> = found.map(|segment| segment.name).collect();
        let behind = names.iter().skip(1);
        let in_blocks = behind.take_while(|next| next.first_sequence <= self.from);
        let in_blocks = in_blocks.count();
        Ok(names.into_iter().skip(in_blocks).collect())
    }

    fn read(&self, name: &SegmentName) -> Result<Bytes, StoreError> {
        self.segments.read(name)
    }

    /// Their folder has its name.
    fn is_id_known(&self) -> bool {
        true
    }

    fn has_whole_segments_only(&self) -> bool {
        true
    }

    fn cut(&self, _: &SegmentName, _: u64) -> Result<(), StoreError> {
        Ok(())
    }

    fn remove(&self, name: &SegmentName) -> Result<(), StoreError> {
        self.segments.remove(name)
    }

    fn set_aside(&self, name: &SegmentName) -> Result<(), StoreError> {
        self.segments.set_aside(name)
    }
}
