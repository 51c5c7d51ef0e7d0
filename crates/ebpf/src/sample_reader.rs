//! Records of the ring buffer of samples become events.

use crate::event::Event;
use crate::held_records::HeldRecords;
use crate::record::{SampleKind, SampleRecord, allocation_of, decode_sample};

/// Reads one record after another.
#[derive(Debug, Default)]
pub(crate) struct SampleReader {
    frames: Vec<u64>,
    requests: HeldRecords,
    /// Stacks of threads that have ended waits, by the thread that waited.
    wakers: HeldRecords,
    /// The record of the request that was done last.
    begun: Vec<u8>,
    /// The record of the thread that ended the last wait, and its frames.
    waker: Vec<u8>,
    waker_frames: Vec<u64>,
    undecodable: u64,
}

// === impl SampleReader ===

impl SampleReader {
    /// The event that `record` is, with its time (CLOCK_MONOTONIC, nanoseconds); `None` where it is none, or
    /// not yet.
    pub(crate) fn read<'a>(&'a mut self, record: &'a [u8]) -> Option<(u64, Event<'a>)> {
        let kind = match SampleRecord::of(record) {
            Some(SampleRecord::RequestDone(done)) => {
                self.begun = self.requests.take(done.request)?;
                let mut sample = decode_sample(&self.begun, &mut self.frames)?;
                sample.value = done.time_ns.saturating_sub(sample.time_ns);
                sample.time_ns = done.time_ns;
                return Some((done.time_ns, Event::BlockIo(sample)));
            }
            Some(SampleRecord::Freed(freed)) => return Some((freed.time_ns, freed.into())),
            Some(SampleRecord::Sample(kind)) => kind,
            None => {
                self.undecodable += 1;
                return None;
            }
        };
        let Some(mut sample) = decode_sample(record, &mut self.frames) else {
            self.undecodable += 1;
            return None;
        };
        let time_ns = sample.time_ns;
        let event = match kind {
            SampleKind::OnCpu => Event::Sample(sample),
            SampleKind::Faults => Event::Faults(sample),
            SampleKind::Growth => Event::Growth(sample),
            SampleKind::KernelLock => Event::KernelLock(sample),
            SampleKind::Explicit => Event::Explicit(sample),
            SampleKind::OffCpu => {
                if let Some(waker) = self.wakers.take(sample.tid.into()) {
                    self.waker = waker;
                    let waker = decode_sample(&self.waker, &mut self.waker_frames);
                    // Of another wait, whose sample was lost or never taken.
                    let waker = waker.filter(|waker| waker.woken_ns == sample.woken_ns);
                    sample.waker_stack = waker.map(Box::new);
                }
                Event::OffCpu(sample)
            }
            SampleKind::Waker => {
                // Waits that are no samples after all would fill it in the end.
                if self.wakers.is_full() {
                    self.wakers.clear();
                }
                self.wakers.hold(sample.count.into(), record);
                return None;
            }
            SampleKind::Request => {
                self.requests.hold(sample.value, record);
                return None;
            }
            SampleKind::Allocation => {
                let Some(allocation) = allocation_of(sample.kernel_frames) else {
                    self.undecodable += 1;
                    return None;
                };
                sample.kernel_frames = &[];
                Event::Allocated(sample, allocation)
            }
        };
        Some((time_ns, event))
    }

    /// Records of a layout that we do not know.
    pub(crate) fn undecodable(&self) -> u64 {
        self.undecodable
    }

    /// Samples of requests whose end was not told.
    pub(crate) fn given_up(&self) -> u64 {
        self.requests.given_up
    }

    /// Stacks of threads that have ended waits, and found no room until the sample of the wait came.
    pub(crate) fn wakers_given_up(&self) -> u64 {
        self.wakers.given_up
    }
}
