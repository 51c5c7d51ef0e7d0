//! Decoding of what bpf/record.h lays out.

use crate::event::{Allocation, LockWait, Sample, TraceContext, UserContext};
use crate::record_numbers::{
    RECORD_ALLOC, RECORD_BLOCK_IO, RECORD_BLOCK_IO_DONE, RECORD_EXIT, RECORD_EXPLICIT,
    RECORD_FAULTS, RECORD_FORK, RECORD_FREE, RECORD_GROWTH, RECORD_KERNEL_LOCK, RECORD_OFF_CPU,
    RECORD_SAMPLE, RECORD_WAKER, REGISTER_COUNT, SAMPLE_COPY_LIMITED, SAMPLE_HAS_REGISTERS,
    SAMPLE_HEADER_BYTES, SAMPLE_IN_KERNEL, SAMPLE_NOT_WALKED, SAMPLE_PREEMPTED,
    SAMPLE_PROCESS_KNOWN,
};
use crate::thread_labels::{LABEL_BYTES, ThreadLabels};
use candela_unwind::{Registers, StackCopy, WalkResult};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// In the sequence of `struct allocation`: its end will be told.
const IS_FOLLOWED: u64 = 1 << 32;

/// A record of the `samples` ring buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleRecord {
    /// [`decode_sample`] reads it.
    Sample(SampleKind),
    RequestDone(RequestDone),
    Freed(FreeRecord),
}

/// What a sample is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleKind {
    OnCpu,
    OffCpu,
    Faults,
    Growth,
    KernelLock,
    Explicit,
    /// A request that has begun; its value is the address of the request.
    Request,
    /// Its kernel frames are what [`allocation_of`] reads.
    Allocation,
    /// Who ends a wait whose sample comes later; `count` is the thread that waited.
    Waker,
}

/// The end of a request whose sample was of [`SampleKind::Request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestDone {
    /// The address of the request.
    pub(crate) request: u64,
    /// CLOCK_MONOTONIC, nanoseconds.
    pub(crate) time_ns: u64,
}

/// The end of a sampled allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreeRecord {
    pub(crate) pid: u32,
    pub(crate) time_ns: u64,
    pub(crate) address: u64,
    pub(crate) sequence: u32,
}

/// A record of the `life` ring buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LifeRecord {
    Fork { pid: u32, parent: u32, time_ns: u64 },
    Exit { pid: u32, time_ns: u64 },
}

/// Reads little-endian numbers one after another; `None` behind the end.
pub(crate) struct Fields<'a> {
    pub(crate) rest: &'a [u8],
}

// === impl Fields ===

impl<'a> Fields<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn array<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        self.bytes(BYTES)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.bytes(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.bytes(8)?.try_into().ok().map(u64::from_le_bytes)
    }
}

/// The text before the first NUL byte.
pub(crate) fn text_before_nul(bytes: &[u8]) -> &OsStr {
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    OsStr::from_bytes(&bytes[..end])
}

// === impl SampleRecord ===

impl SampleRecord {
    /// What `record` is; `None` if we do not know it.
    pub(crate) fn of(record: &[u8]) -> Option<SampleRecord> {
        let mut fields = Fields { rest: record };
        let kind = match fields.u32()? {
            RECORD_SAMPLE => SampleKind::OnCpu,
            RECORD_OFF_CPU => SampleKind::OffCpu,
            RECORD_FAULTS => SampleKind::Faults,
            RECORD_GROWTH => SampleKind::Growth,
            RECORD_KERNEL_LOCK => SampleKind::KernelLock,
            RECORD_BLOCK_IO => SampleKind::Request,
            RECORD_EXPLICIT => SampleKind::Explicit,
            RECORD_ALLOC => SampleKind::Allocation,
            RECORD_WAKER => SampleKind::Waker,
            RECORD_FREE => return decode_free(fields).map(SampleRecord::Freed),
            RECORD_BLOCK_IO_DONE => {
                fields.u32()?;
                return Some(SampleRecord::RequestDone(RequestDone {
                    request: fields.u64()?,
                    time_ns: fields.u64()?,
                }));
            }
            _ => return None,
        };
        Some(SampleRecord::Sample(kind))
    }
}

/// The sample in `record`, its frames copied to `frames`; `None` if it is none.
pub(crate) fn decode_sample<'a>(record: &'a [u8], frames: &'a mut Vec<u64>) -> Option<Sample<'a>> {
    let mut header = Fields {
        rest: record.get(..SAMPLE_HEADER_BYTES)?,
    };
    header.u32()?;
    let result = WalkResult::from_code(header.u8()?)?;
    let flags = header.u8()?;
    let (event, label_count) = (header.u8()?, usize::from(header.u8()?));
    let (pid, tid, cpu) = (header.u32()?, header.u32()?, header.u32()?);
    let kernel_frames = usize::from(header.u16()?);
    let user_frames = usize::from(header.u16()?);
    let stack_bytes = header.u32()? as usize;
    let count = header.u32()?;
    let (value, run_queue_ns) = (header.u64()?, header.u64()?);
    let (time_ns, cgroup_id, process_start_ns) = (header.u64()?, header.u64()?, header.u64()?);
    let lock_address = header.u64()?;
    let lock_holder = text_before_nul(header.bytes(16)?);
    let comm = text_before_nul(header.bytes(16)?);
    let trace = TraceContext {
        trace_id: header.array()?,
        span_id: header.array()?,
    };
    let waker = text_before_nul(header.bytes(16)?);
    let woken_ns = header.u64()?;

    let mut payload = Fields {
        rest: &record[SAMPLE_HEADER_BYTES..],
    };
    frames.clear();
    for _ in 0..kernel_frames + user_frames {
        frames.push(payload.u64()?);
    }
    let context = if flags & SAMPLE_HAS_REGISTERS != 0 {
        Some(decode_context(&mut payload, stack_bytes)?)
    } else {
        None
    };
    let labels = ThreadLabels::new(payload.bytes(label_count * LABEL_BYTES)?);
    let (kernel_frames, user_frames) = frames.split_at(kernel_frames);
    Some(Sample {
        pid,
        tid,
        cpu,
        time_ns,
        value,
        run_queue_ns,
        event: event.into(),
        count,
        cgroup_id,
        process_start_ns,
        comm,
        result,
        in_kernel: flags & SAMPLE_IN_KERNEL != 0,
        process_known: flags & SAMPLE_PROCESS_KNOWN != 0,
        copy_limited: flags & SAMPLE_COPY_LIMITED != 0,
        was_preempted: flags & SAMPLE_PREEMPTED != 0,
        lock: (lock_address != 0).then_some(LockWait {
            address: lock_address,
            holder: (!lock_holder.is_empty()).then_some(lock_holder),
        }),
        trace: (trace != TraceContext::default()).then_some(trace),
        waker: (!waker.is_empty()).then_some(waker),
        woken_ns,
        waker_stack: None,
        labels,
        is_walked: flags & SAMPLE_NOT_WALKED == 0,
        kernel_frames,
        user_frames,
        context,
    })
}

/// The allocation in the words that stand in front of its user frames.
pub(crate) fn allocation_of(words: &[u64]) -> Option<Allocation> {
    let &[address, size, sequence, interval, stands_for] = words else {
        return None;
    };
    Some(Allocation {
        address,
        size,
        sequence: sequence as u32,
        is_followed: sequence & IS_FOLLOWED != 0,
        interval,
        stands_for,
    })
}

fn decode_free(mut fields: Fields<'_>) -> Option<FreeRecord> {
    Some(FreeRecord {
        pid: fields.u32()?,
        time_ns: fields.u64()?,
        address: fields.u64()?,
        sequence: fields.u64()? as u32,
    })
}

fn decode_context<'a>(payload: &mut Fields<'a>, stack_bytes: usize) -> Option<UserContext<'a>> {
    let mut words = [0; REGISTER_COUNT];
    for word in &mut words {
        *word = payload.u64()?;
    }
    let mut registers = Registers::default();
    registers.general.copy_from_slice(&words[..16]);
    registers.rip = words[16];
    let stack = StackCopy {
        base: registers.rsp(),
        bytes: payload.bytes(stack_bytes)?,
    };
    Some(UserContext { registers, stack })
}

/// The fork or exit in `record`; `None` if it is neither.
pub(crate) fn decode_life(record: &[u8]) -> Option<LifeRecord> {
    let mut fields = Fields { rest: record };
    let (kind, pid, parent) = (fields.u32()?, fields.u32()?, fields.u32()?);
    fields.u32()?;
    let time_ns = fields.u64()?;
    match kind {
        RECORD_FORK => Some(LifeRecord::Fork {
            pid,
            parent,
            time_ns,
        }),
        RECORD_EXIT => Some(LifeRecord::Exit { pid, time_ns }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_or_foreign_records_are_refused() {
        let mut frames = Vec::new();
        assert!(decode_sample(&[1, 0, 0, 0], &mut frames).is_none());
        assert!(decode_sample(&[9; SAMPLE_HEADER_BYTES], &mut frames).is_none());
        assert_eq!(SampleRecord::of(&[200, 0, 0, 0]), None);
        assert_eq!(SampleRecord::of(&[9, 0, 0, 0]), None, "no end of a request");
        assert_eq!(decode_life(&[7; 24]), None);
    }

    #[test]
    fn allocations_and_their_ends_are_told() {
        let words = [0x5000, 24, IS_FOLLOWED | 7, 1000, 3];
        let expected = Allocation {
            address: 0x5000,
            size: 24,
            sequence: 7,
            is_followed: true,
            interval: 1000,
            stands_for: 3,
        };
        assert_eq!(allocation_of(&words), Some(expected));
        assert_eq!(allocation_of(&words[..4]), None);

        let mut record = vec![RECORD_FREE as u8, 0, 0, 0, 9, 0, 0, 0];
        let words = [3_u64, 0x5000, 7];
        record.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        let expected = FreeRecord {
            pid: 9,
            time_ns: 3,
            address: 0x5000,
            sequence: 7,
        };
        assert_eq!(
            SampleRecord::of(&record),
            Some(SampleRecord::Freed(expected))
        );
        record.pop();
        assert_eq!(SampleRecord::of(&record), None);
    }

    #[test]
    fn a_sample_must_hold_the_frames_it_announces() {
        let mut record = vec![0; SAMPLE_HEADER_BYTES + 16];
        record[0] = 1;
        record[20] = 1; // kernel frames
        record[22] = 1; // user frames
        record[SAMPLE_HEADER_BYTES] = 0xaa;
        record[SAMPLE_HEADER_BYTES + 8] = 0xbb;
        let mut frames = Vec::new();
        record[28] = 3; // count
        record[32] = 200; // nanoseconds
        let on_cpu = SampleRecord::Sample(SampleKind::OnCpu);
        assert_eq!(SampleRecord::of(&record), Some(on_cpu));
        let sample = decode_sample(&record, &mut frames).expect("whole");
        assert_eq!((sample.count, sample.value), (3, 200));
        assert_eq!(
            (sample.kernel_frames, sample.user_frames),
            (&[0xaa][..], &[0xbb][..])
        );
        assert!(sample.context.is_none() && sample.lock.is_none() && sample.trace.is_none());
        record[0] = 4;
        record[112] = 0x4b; // the first byte of the trace
        record[135] = 0x02; // the last byte of the span
        record[136] = b'w'; // the first byte of the waker
        record[159] = 7; // the last byte of when it ended the wait
        record[5] = SAMPLE_PREEMPTED;
        record[72] = 0x40; // the address of a lock
        let mut frames = Vec::new();
        let off_cpu = SampleRecord::Sample(SampleKind::OffCpu);
        assert_eq!(SampleRecord::of(&record), Some(off_cpu));
        let sample = decode_sample(&record, &mut frames).expect("whole");
        assert!(sample.was_preempted);
        assert_eq!(sample.lock.map(|lock| lock.address), Some(0x40));
        let trace = sample.trace.expect("it has one");
        assert_eq!((trace.trace_id[0], trace.trace_id[1]), (0x4b, 0));
        assert_eq!((trace.span_id[6], trace.span_id[7]), (0, 2));
        assert_eq!(sample.waker, Some(OsStr::new("w")));
        assert_eq!(sample.woken_ns, 7 << 56);
        record[7] = 1; // labels
        assert!(decode_sample(&record, &mut Vec::new()).is_none());
        record.resize(SAMPLE_HEADER_BYTES + 16 + LABEL_BYTES, 0);
        assert!(decode_sample(&record, &mut Vec::new()).is_some());
        record[7] = 0;
        record.truncate(SAMPLE_HEADER_BYTES + 15);
        assert!(decode_sample(&record, &mut Vec::new()).is_none());
    }
}
