//! Records of the perf events of threads, as perf_event_open(2) lays them out.

use crate::event::UserContext;
use crate::record::Fields;
use crate::sideband::{SidebandBody, decode_mapping, owned_text};
use candela_unwind::{Registers, StackCopy, WalkResult};
use libbpf_rs::libbpf_sys;

/// Of the user registers in a record, by the numbers of asm/perf_regs.h in ascending order, the places of those
/// that DWARF numbers 0 to 15: ax, dx, cx, bx, si, di, bp, sp, r8 to r15.
const BY_DWARF: [usize; 16] = [0, 3, 2, 1, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16];

/// The place of the instruction pointer among them.
const INSTRUCTION_POINTER: usize = 8;

const REGISTER_COUNT: usize = 17;

/// Addresses from here on are marks between the parts of a call chain (enum perf_callchain_context).
const FIRST_CONTEXT_MARK: u64 = libbpf_sys::PERF_CONTEXT_MAX;

/// One record, owned: those of several CPUs are put into order before they are handed on.
#[derive(Debug)]
pub(crate) struct TaskRecord {
    pub(crate) time_ns: u64,
    pub(crate) body: TaskBody,
}

#[derive(Debug)]
pub(crate) enum TaskBody {
    Sample(TaskSample),
    Named {
        pid: u32,
        tid: u32,
        comm: Vec<u8>,
        is_exec: bool,
    },
    Forked {
        pid: u32,
        parent: u32,
        tid: u32,
        parent_tid: u32,
    },
    Ended {
        pid: u32,
        tid: u32,
    },
    /// A mapping, or records that found no room.
    Sideband(SidebandBody),
    /// The kernel held samples back to save its own time.
    Throttled,
}

/// A sample of what a thread did.
#[derive(Debug)]
pub(crate) struct TaskSample {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) in_kernel: bool,
    pub(crate) kernel_frames: Vec<u64>,
    pub(crate) user: UserState,
}

/// What is known of a thread's user space.
#[derive(Debug)]
pub(crate) enum UserState {
    /// It has none any more.
    Absent,
    /// A 32-bit program, whose frames are not laid out as the tables say.
    Compat,
    Copied {
        registers: Registers,
        stack: Vec<u8>,
    },
}

// === impl TaskSample ===

impl TaskSample {
    /// How a walk ends that nobody has tried yet.
    pub(crate) fn result(&self) -> WalkResult {
        match self.user {
            UserState::Absent => WalkResult::BadRead,
            UserState::Compat => WalkResult::NoRule,
            UserState::Copied { .. } => WalkResult::NoTable,
        }
    }

    pub(crate) fn context(&self) -> Option<UserContext<'_>> {
        let UserState::Copied { registers, stack } = &self.user else {
            return None;
        };
        Some(UserContext {
            registers: *registers,
            stack: StackCopy {
                base: registers.rsp(),
                bytes: stack,
            },
        })
    }
}

/// The record, `None` if it is of no use or of a layout that we do not know.
pub(crate) fn decode(record: &[u8], with_kernel: bool) -> Option<TaskRecord> {
    /// Of each record but samples: pid, tid, time.
    const SAMPLE_ID_BYTES: usize = 16;
    let mut fields = Fields { rest: record };
    let kind = fields.u32()?;
    let misc = u32::from(fields.u16()?);
    fields.u16()?;
    if kind == libbpf_sys::PERF_RECORD_SAMPLE {
        return decode_sample(&mut fields, misc, with_kernel);
    }
    let content = fields.bytes(fields.rest.len().checked_sub(SAMPLE_ID_BYTES)?)?;
    fields.u64()?;
    let time_ns = fields.u64()?;
    let mut fields = Fields { rest: content };
    let body = match kind {
        libbpf_sys::PERF_RECORD_COMM => TaskBody::Named {
            pid: fields.u32()?,
            tid: fields.u32()?,
            comm: owned_text(fields.rest),
            is_exec: misc & libbpf_sys::PERF_RECORD_MISC_COMM_EXEC != 0,
        },
        libbpf_sys::PERF_RECORD_FORK => TaskBody::Forked {
            pid: fields.u32()?,
            parent: fields.u32()?,
            tid: fields.u32()?,
            parent_tid: fields.u32()?,
        },
        libbpf_sys::PERF_RECORD_EXIT => {
            let pid = fields.u32()?;
            fields.u32()?;
            TaskBody::Ended {
                pid,
                tid: fields.u32()?,
            }
        }
        libbpf_sys::PERF_RECORD_MMAP2 => TaskBody::Sideband(decode_mapping(&mut fields, misc)?),
        libbpf_sys::PERF_RECORD_LOST => {
            fields.u64()?;
            TaskBody::Sideband(SidebandBody::Lost {
                records: fields.u64()?,
            })
        }
        libbpf_sys::PERF_RECORD_THROTTLE => TaskBody::Throttled,
        _ => return None,
    };
    Some(TaskRecord { time_ns, body })
}

fn decode_sample(fields: &mut Fields<'_>, misc: u32, with_kernel: bool) -> Option<TaskRecord> {
    let (pid, tid) = (fields.u32()?, fields.u32()?);
    let time_ns = fields.u64()?;
    let mut kernel_frames = Vec::new();
    if with_kernel {
        for _ in 0..fields.u64()? {
            let address = fields.u64()?;
            if address < FIRST_CONTEXT_MARK {
                kernel_frames.push(address);
            }
        }
    }
    let user = decode_user(fields)?;
    let mode = misc & libbpf_sys::PERF_RECORD_MISC_CPUMODE_MASK;
    Some(TaskRecord {
        time_ns,
        body: TaskBody::Sample(TaskSample {
            pid,
            tid,
            in_kernel: mode == libbpf_sys::PERF_RECORD_MISC_KERNEL,
            kernel_frames,
            user,
        }),
    })
}

fn decode_user(fields: &mut Fields<'_>) -> Option<UserState> {
    let abi = fields.u64()?;
    if abi == u64::from(libbpf_sys::PERF_SAMPLE_REGS_ABI_NONE) {
        return Some(UserState::Absent);
    }
    let mut words = [0; REGISTER_COUNT];
    for word in &mut words {
        *word = fields.u64()?;
    }
    if abi == u64::from(libbpf_sys::PERF_SAMPLE_REGS_ABI_32) {
        return Some(UserState::Compat);
    }
    let room = usize::try_from(fields.u64()?).ok()?;
    let mut stack = fields.bytes(room)?;
    if room > 0 {
        // Of the room so much was filled: a stack has an end.
        let filled = usize::try_from(fields.u64()?).ok()?;
        stack = stack.get(..filled)?;
    }
    Some(UserState::Copied {
        registers: Registers {
            general: BY_DWARF.map(|place| words[place]),
            rip: words[INSTRUCTION_POINTER],
        },
        stack: stack.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u16, content: &[u64], sample_id: &[u64]) -> Vec<u8> {
        let words = content.iter().chain(sample_id);
        let body: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend(misc.to_le_bytes());
        bytes.extend((body.len() as u16 + 8).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    fn two(low: u32, high: u32) -> u64 {
        u64::from(low) | u64::from(high) << 32
    }

    #[test]
    fn a_sample_has_its_kernel_frames_its_registers_and_as_much_stack_as_there_was() {
        let mut content = vec![two(7, 8), 1000];
        // The mark of the kernel's part, and two addresses.
        content.extend([3, (-128_i64) as u64, 0xffff_8000, 0xffff_9000]);
        content.push(libbpf_sys::PERF_SAMPLE_REGS_ABI_64.into());
        content.extend(100..117);
        content.extend([24, 1, 2, 3, 16]);
        let bytes = record(libbpf_sys::PERF_RECORD_SAMPLE, 1, &content, &[]);
        let decoded = decode(&bytes, true).expect("a sample");
        assert_eq!(decoded.time_ns, 1000);
        let TaskBody::Sample(sample) = decoded.body else {
            panic!("{decoded:?}");
        };
        assert_eq!((sample.pid, sample.tid, sample.in_kernel), (7, 8, true));
        assert_eq!(sample.kernel_frames, [0xffff_8000, 0xffff_9000]);
        let context = sample.context().expect("a stack");
        assert_eq!(context.registers.rip, 108);
        assert_eq!(context.registers.general[..4], [100, 103, 102, 101]);
        assert_eq!(context.registers.rbp(), 106);
        assert_eq!(context.registers.general[15], 116);
        assert_eq!(context.stack.base, 107);
        assert_eq!(
            context.stack.bytes,
            [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]
        );
        for cut in 0..bytes.len() {
            assert!(decode(&bytes[..cut], true).is_none(), "{cut} bytes");
        }
    }

    #[test]
    fn lives_of_threads_are_told() {
        let id = [two(9, 10), 77];
        let fork = record(
            libbpf_sys::PERF_RECORD_FORK,
            0,
            &[two(9, 1), two(10, 1), 5],
            &id,
        );
        let decoded = decode(&fork, false).expect("a fork");
        assert_eq!(decoded.time_ns, 77);
        assert!(matches!(
            decoded.body,
            TaskBody::Forked {
                pid: 9,
                parent: 1,
                tid: 10,
                parent_tid: 1
            }
        ));
        let name = u64::from_le_bytes(*b"sh\0\0\0\0\0\0");
        let misc = libbpf_sys::PERF_RECORD_MISC_COMM_EXEC as u16;
        let exec = record(libbpf_sys::PERF_RECORD_COMM, misc, &[two(9, 9), name], &id);
        let decoded = decode(&exec, false).expect("an exec");
        assert!(
            matches!(&decoded.body, TaskBody::Named { pid: 9, comm, is_exec: true, .. } if comm == b"sh"),
            "{decoded:?}"
        );
        let lost = record(libbpf_sys::PERF_RECORD_LOST, 0, &[1, 12], &id);
        let decoded = decode(&lost, false).expect("a loss");
        assert!(matches!(
            decoded.body,
            TaskBody::Sideband(SidebandBody::Lost { records: 12 })
        ));
        let throttle = record(libbpf_sys::PERF_RECORD_THROTTLE, 0, &[70, 1, 1], &id);
        let decoded = decode(&throttle, false).expect("a pause");
        assert!(matches!(decoded.body, TaskBody::Throttled));
    }
}
