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

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use object_store::path::Path;

    use super::*;
    use crate::clock::ManualClock;
    use crate::log::DurableLog;
    use crate::log::ObjectLog;
    use crate::log::encode_record;
    use crate::storage::Bucket;
    use crate::storage::ObjectLocation;

    const SECOND_NS: i64 = 1_000_000_000;

    fn settings(clock: &Arc<ManualClock>, process_id: u64) -> ObjectSettings {
        ObjectSettings {
            segment_interval: Duration::from_secs(1),
            retry_pause: Duration::ZERO,
            clock: Arc::<ManualClock>::clone(clock),
            process_id,
        }
    }

    fn bucket() -> Bucket {
        let location = ObjectLocation {
            store: Arc::new(InMemory::new()),
            prefix: Path::from("prod"),
        };
        Bucket::new(location, "memory").expect("threads")
    }

    fn end_of(log: &ObjectLog, settings: ObjectSettings) -> ObjectEnd {
        let replayed = log.replay(1, &mut |_, _| Ok(())).expect("reads");
        lock(&log.tail).next_sequence = replayed.next_sequence;
        let (segments, tail) = (log.segments.clone(), Arc::clone(&log.tail));
        ObjectEnd::new(log.writer_id(), segments, settings, tail, Arc::default())
    }

    fn record(value: u8) -> Vec<u8> {
        encode_record("t", 0, value.into(), &[value]).expect("compresses")
    }

    #[test]
    fn a_refused_segment_that_arrives_late_is_stepped_over() {
        let clock = Arc::new(ManualClock::at(0));
        let (bucket, settings) = (bucket(), settings(&clock, 1));
        let log = ObjectLog::open(&bucket, 7, 0, settings.clone()).expect("claims");
        let mut end = end_of(&log, settings);
        assert_eq!(end.append(&[&record(1)]), Ok(2), "behind the claim");
        // Two records that the bucket took after we had given up on it.
        let late = end.segment(3, &[&record(2), &record(3)]);
        lock(&log.tail).refused(&late, 2);
        let name = ObjectSegments::name(3);
        log.segments.put_new(&name, late).expect("writes");
        log.check_owner().expect("it is ours");
        assert_eq!(end.append(&[&record(4)]), Ok(5));
        let mut found = Vec::new();
        let replayed = log.replay(2, &mut |sequence, record| {
            found.push((sequence, record.key));
            Ok(())
        });
        assert_eq!(replayed.expect("reads").damaged_records, 0);
        assert_eq!(found, [(2, 1), (3, 2), (4, 3), (5, 4)]);
    }

    #[test]
    fn who_claims_later_fences_who_claimed_before() {
        let clock = Arc::new(ManualClock::at(0));
        let bucket = bucket();
        let open = |process_id| {
            let settings = settings(&clock, process_id);
            let log = ObjectLog::open(&bucket, 7, 0, settings.clone()).expect("claims");
            let end = end_of(&log, settings);
            (log, end)
        };
        let (first, mut first_end) = open(1);
        let (second, mut second_end) = open(2);
        first.check_owner().expect_err("the second one has it");
        let fenced = first_end.append(&[&record(1)]);
        assert!(
            matches!(fenced, Err(LogFailure::Fenced { .. })),
            "{fenced:?}"
        );
        assert_eq!(
            second_end.append(&[&record(2)]),
            Ok(3),
            "behind both claims"
        );
        first.remove_before(u64::MAX).expect_err("it is not ours");
        second.remove_before(3).expect("it is ours");
        assert_eq!(first.first_sequence().expect("reads"), Some(3));
    }

    #[test]
    fn a_claim_in_the_place_of_a_refused_segment_is_not_ours() {
        let clock = Arc::new(ManualClock::at(0));
        let (bucket, settings_of_first) = (bucket(), settings(&clock, 1));
        let first = ObjectLog::open(&bucket, 7, 0, settings_of_first.clone()).expect("claims");
        let mut end = end_of(&first, settings_of_first);
        assert_eq!(end.append(&[&record(1)]), Ok(2));
        let refused = end.segment(3, &[&record(2)]);
        lock(&first.tail).refused(&refused, 1);
        ObjectLog::open(&bucket, 7, 0, settings(&clock, 2)).expect("claims");
        first.check_owner().expect_err("the second one has it");
        first.remove_before(u64::MAX).expect_err("it is not ours");
    }

    #[test]
    fn under_load_a_segment_begins_each_second() {
        let clock = Arc::new(ManualClock::at(0));
        let settings = settings(&clock, 1);
        let log = ObjectLog::open(&bucket(), 7, 0, settings.clone()).expect("claims");
        let mut end = end_of(&log, settings);
        assert_eq!(end.patience(0).linger, Duration::ZERO, "the first one");
        end.append(&[&record(1)]).expect("writes");
        clock.advance(SECOND_NS / 4);
        assert_eq!(end.patience(1).linger, Duration::from_millis(750));
        clock.advance(SECOND_NS);
        assert_eq!(end.patience(1).linger, Duration::ZERO);
    }
}
