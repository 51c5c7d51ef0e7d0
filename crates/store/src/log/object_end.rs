//! The open end of the log in a bucket.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;

use super::LogCounters;
use super::LogEnd;
use super::LogFailure;
use super::Patience;
use super::Sequence;
use super::object::ObjectSettings;
use super::object_segments::Created;
use super::object_segments::ObjectSegments;
use super::object_tail::Tail;
use super::object_tail::Taken;
use super::replay::SegmentName;
use super::segment::SegmentHeader;
use crate::storage::explain;
use crate::sync::lock;

/// A segment of this size waits for nobody.
const ENOUGH_BYTES: u64 = 8 << 20;

/// Writes segments, each with one request.
#[derive(Debug)]
pub(super) struct ObjectEnd {
    writer_id: u64,
    segments: ObjectSegments,
    settings: ObjectSettings,
    tail: Arc<Mutex<Tail>>,
    counters: Arc<LogCounters>,
    /// When the last segment was begun, by the clock that never goes back.
    begun_ns: Option<i64>,
}

impl ObjectEnd {
    pub(super) fn new(
        writer_id: u64,
        segments: ObjectSegments,
        settings: ObjectSettings,
        tail: Arc<Mutex<Tail>>,
        counters: Arc<LogCounters>,
    ) -> Self {
        Self {
            writer_id,
            segments,
            settings,
            tail,
            counters,
            begun_ns: None,
        }
    }

    fn segment(&self, first_sequence: Sequence, records: &[&[u8]]) -> Bytes {
        let header = SegmentHeader {
            writer_id: self.writer_id,
            first_sequence,
        };
        let mut content = header.encode();
        for record in records {
            content.extend_from_slice(record);
        }
        content.into()
    }

    fn fenced(&self, name: &SegmentName) -> LogFailure {
        LogFailure::Fenced {
            segment: self.segments.place(name),
        }
    }
}

impl LogEnd for ObjectEnd {
    /// The first profile after a quiet time is written at once; under load a segment begins when
    /// the interval is over.
    fn patience(&self, _last_batch: usize) -> Patience {
        let since_ns = self.begun_ns.map_or(i64::MAX, |begun_ns| {
            let now_ns = self.settings.clock.monotonic_ns();
            now_ns.saturating_sub(begun_ns)
        });
        let since = Duration::from_nanos(u64::try_from(since_ns).unwrap_or(0));
        Patience {
            linger: self.settings.segment_interval.saturating_sub(since),
            enough_bytes: ENOUGH_BYTES,
        }
    }

    fn append(&mut self, records: &[&[u8]]) -> Result<Sequence, LogFailure> {
        self.begun_ns = Some(self.settings.clock.monotonic_ns());
        let mut tail = lock(&self.tail);
        if let Some(name) = tail.fenced_by() {
            return Err(self.fenced(name));
        }
        loop {
            let first = tail.next_sequence;
            let name = ObjectSegments::name(first);
            let content = self.segment(first, records);
            let pause = self.settings.retry_pause;
            match self.segments.create(&name, &content, pause) {
                Ok(Created::Written) => {
                    tail.written(records.len() as u64);
                    self.counters.grow(content.len() as u64);
                    self.counters.batches.fetch_add(1, Ordering::Relaxed);
                    return Ok(first);
                }
                Ok(Created::Taken(found)) => match tail.taken(&name, &found) {
                    Taken::ByUs => self.counters.grow(found.len() as u64),
                    Taken::ByAnother => return Err(self.fenced(&name)),
                },
                Err(error) => {
                    tail.refused(&content, records.len() as u64);
                    return Err(LogFailure::Write {
                        place: self.segments.place(&name),
                        reason: explain(&error),
                    });
                }
            }
        }
    }

    fn close(&mut self) {}
}
