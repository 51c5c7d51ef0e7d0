//! Records in the order of their times.
//!
//! Each processor has a buffer of its own, and perf writes one after the other. When it has been
//! through all of them it says so (`FINISHED_ROUND`): what it then finds is later than all that the
//! round before had.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::perf_data::bytes::Bytes;
use crate::perf_data::bytes::Endian;
use crate::perf_data::records::Record;

/// Records that wait for earlier ones. Beyond, the earlier half is taken to be complete, as perf
/// does when its memory is used up.
const MOST_QUEUED_BYTES: usize = 64 << 20;

/// What a record costs besides its bytes.
const RECORD_OVERHEAD: usize = size_of::<Queued>() + 16;

/// A record that waits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    time: u64,
    /// Records of one time stay in the order in which they were written.
    number: u64,
    kind: u32,
    misc: u16,
    body: Box<[u8]>,
}

/// All that wait.
#[derive(Debug)]
pub(crate) struct Queue {
    heap: BinaryHeap<Queued>,
    bytes: usize,
    pushed: u64,
    latest: u64,
    latest_of_the_round_before: u64,
    most_bytes: usize,
}

impl Ord for Queued {
    /// The heap gives the greatest first, which has to be the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Queued {
    pub(crate) fn record(&self, endian: Endian) -> Record<'_> {
        Record {
            kind: self.kind,
            misc: self.misc,
            body: Bytes::new(&self.body, endian),
        }
    }

    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    fn bytes(&self) -> usize {
        self.body.len() + RECORD_OVERHEAD
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            bytes: 0,
            pushed: 0,
            latest: 0,
            latest_of_the_round_before: 0,
            most_bytes: MOST_QUEUED_BYTES,
        }
    }
}

impl Queue {
    pub(crate) fn push(&mut self, time: u64, record: Record<'_>) {
        let queued = Queued {
            time,
            number: self.pushed,
            kind: record.kind,
            misc: record.misc,
            body: record.body.rest().into(),
        };
        self.pushed += 1;
        self.latest = self.latest.max(time);
        self.bytes += queued.bytes();
        self.heap.push(queued);
    }

    /// Ends a round; what is returned is the time up to which all records are there.
    pub(crate) fn end_round(&mut self) -> u64 {
        std::mem::replace(&mut self.latest_of_the_round_before, self.latest)
    }

    /// The time up to which records have to leave because there are too many; `None` when there are
    /// not.
    pub(crate) fn overflow_time(&self) -> Option<u64> {
        if self.bytes <= self.most_bytes {
            return None;
        }
        let first = self.heap.peek()?.time;
        Some(first + (self.latest.saturating_sub(first)) / 2)
    }

    /// The earliest record, unless it is later than `time`.
    pub(crate) fn pop(&mut self, time: u64) -> Option<Queued> {
        if self.heap.peek()?.time > time {
            return None;
        }
        let queued = self.heap.pop()?;
        self.bytes -= queued.bytes();
        Some(queued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut Queue, time: u64, kind: u32) {
        let body = Bytes::new(&[], Endian::Little);
        let misc = 0;
        queue.push(time, Record { kind, misc, body });
    }

    fn popped(queue: &mut Queue, time: u64) -> Vec<(u64, u32)> {
        let queued = std::iter::from_fn(|| queue.pop(time));
        queued.map(|queued| (queued.time, queued.kind)).collect()
    }

    #[test]
    fn a_round_lets_out_what_the_round_before_had() {
        let mut queue = Queue::default();
        push(&mut queue, 20, 1);
        push(&mut queue, 10, 2);
        push(&mut queue, 10, 3);
        assert_eq!(queue.end_round(), 0);
        push(&mut queue, 30, 4);
        push(&mut queue, 15, 5);
        let complete = queue.end_round();
        assert_eq!(complete, 20);
        assert_eq!(
            popped(&mut queue, complete),
            [(10, 2), (10, 3), (15, 5), (20, 1)]
        );
        assert_eq!(popped(&mut queue, u64::MAX), [(30, 4)]);
        assert_eq!(queue.bytes, 0);
    }

    #[test]
    fn too_many_records_leave_before_their_round_ends() {
        let mut queue = Queue {
            most_bytes: 2 * RECORD_OVERHEAD,
            ..Queue::default()
        };
        push(&mut queue, 100, 1);
        push(&mut queue, 0, 2);
        assert_eq!(queue.overflow_time(), None);
        push(&mut queue, 50, 3);
        let time = queue.overflow_time().expect("one too many");
        assert_eq!(popped(&mut queue, time), [(0, 2), (50, 3)]);
    }
}
