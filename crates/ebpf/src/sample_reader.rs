//! Records of the ring buffer of samples become events.

use crate::event::{Event, Sample};
use crate::record::{SampleKind, SampleRecord, allocation_of, decode_sample};
use crate::requests::OpenRequests;

/// Reads one record after another.
#[derive(Debug, Default)]
pub(crate) struct SampleReader {
    frames: Vec<u64>,
    requests: OpenRequests,
    /// The record of the request that was done last.
    begun: Vec<u8>,
    undecodable: u64,
}

// === impl SampleReader ===

impl SampleReader {
    /// The event that `record` is, with its time (CLOCK_MONOTONIC, nanoseconds); `None` where it is none, or
    /// not yet.
    pub(crate) fn read<'a>(&'a mut self, record: &'a [u8]) -> Option<(u64, Event<'a>)> {
        let done = match SampleRecord::of(record) {
            Some(SampleRecord::RequestDone(done)) => done,
            Some(SampleRecord::Freed(freed)) => return Some((freed.time_ns, freed.into())),
            Some(SampleRecord::Sample(kind)) => {
                let Some(mut sample) = decode_sample(record, &mut self.frames) else {
                    self.undecodable += 1;
                    return None;
                };
                if kind == SampleKind::Request {
                    self.requests.begin(sample.value, record);
                    return None;
                }
                if kind == SampleKind::Allocation {
                    let Some(allocation) = allocation_of(sample.kernel_frames) else {
                        self.undecodable += 1;
                        return None;
                    };
                    sample.kernel_frames = &[];
                    return Some((sample.time_ns, Event::Allocated(sample, allocation)));
                }
                return Some((sample.time_ns, event_of(kind, sample)));
            }
            None => {
                self.undecodable += 1;
                return None;
            }
        };
        self.begun = self.requests.end(done.request)?;
        let mut sample = decode_sample(&self.begun, &mut self.frames)?;
        sample.value = done.time_ns.saturating_sub(sample.time_ns);
        sample.time_ns = done.time_ns;
        Some((done.time_ns, Event::BlockIo(sample)))
    }

    /// Records of a layout that we do not know.
    pub(crate) fn undecodable(&self) -> u64 {
        self.undecodable
    }

    /// Samples of requests whose end was not told.
    pub(crate) fn given_up(&self) -> u64 {
        self.requests.given_up
    }
}

fn event_of(kind: SampleKind, sample: Sample<'_>) -> Event<'_> {
    match kind {
        SampleKind::OnCpu => Event::Sample(sample),
        SampleKind::OffCpu => Event::OffCpu(sample),
        SampleKind::Faults => Event::Faults(sample),
        SampleKind::Growth => Event::Growth(sample),
        SampleKind::KernelLock => Event::KernelLock(sample),
        SampleKind::Request | SampleKind::Allocation => Event::BlockIo(sample),
        SampleKind::Explicit => Event::Explicit(sample),
    }
}
