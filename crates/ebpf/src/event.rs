//! What the kernel tells us, typed.

use crate::thread_labels::ThreadLabels;
use candela_unwind::{Registers, StackCopy, WalkResult};
use std::ffi::OsStr;

/// One event. Times are CLOCK_MONOTONIC in nanoseconds; [`Clock`](crate::Clock) converts them.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A CPU sample.
    Sample(Sample<'a>),
    /// A sample of time off CPU, with [`Options::off_cpu_mean_ns`](crate::Options::off_cpu_mean_ns).
    OffCpu(Sample<'a>),
    /// A sample of page faults, with [`Options::fault_interval`](crate::Options::fault_interval).
    Faults(Sample<'a>),
    /// A sample of memory growth, with [`Options::growth_mean_bytes`](crate::Options::growth_mean_bytes).
    Growth(Sample<'a>),
    /// A sample of a wait for a lock of the kernel, with
    /// [`Options::kernel_lock_mean_ns`](crate::Options::kernel_lock_mean_ns).
    KernelLock(Sample<'a>),
    /// A sample of a request to a block device that is done, with
    /// [`Options::request_interval`](crate::Options::request_interval). Its time is when it was done.
    BlockIo(Sample<'a>),
    /// A sample of an event of [`Options::events`](crate::Options::events).
    Explicit(Sample<'a>),
    /// A sampled allocation, with [`Options::allocations`](crate::Options::allocations).
    Allocated(Sample<'a>, Allocation),
    /// The end of a sampled allocation.
    Freed {
        /// Process id.
        pid: u32,
        /// When.
        time_ns: u64,
        /// What [`Allocation::address`] was.
        address: u64,
        /// What [`Allocation::sequence`] was.
        sequence: u32,
    },
    /// A process replaced its program. Its mappings were forgotten; `Mapped` events for the new ones follow.
    Exec {
        /// Process id.
        pid: u32,
        /// When.
        time_ns: u64,
        /// Its new name, at most 15 bytes.
        comm: &'a OsStr,
    },
    /// A new process, with copies of its parent's mappings (already set in the kernel).
    Fork {
        /// The new process.
        pid: u32,
        /// The process that forked.
        parent: u32,
        /// When.
        time_ns: u64,
    },
    /// The last thread of a process ended; its mappings were forgotten.
    Exit {
        /// Process id.
        pid: u32,
        /// When.
        time_ns: u64,
    },
    /// A process mapped executable memory.
    Mapped(Mapped<'a>),
    /// The kernel had no room for this many side-band records (exec, mappings): rescan `/proc`.
    SidebandLost {
        /// How many records.
        records: u64,
    },
}

/// One sample of what a thread did on a CPU, what it was doing when it left one, or when a page fault came.
#[derive(Debug)]
pub struct Sample<'a> {
    /// Process id (thread group).
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// The CPU it ran on; off CPU, the one it came back to.
    pub cpu: u32,
    /// CLOCK_MONOTONIC, nanoseconds; off CPU, when it came back.
    pub time_ns: u64,
    /// The time that the sample stands for, nanoseconds: on CPU one sampling period; off CPU at least
    /// [`Options::off_cpu_mean_ns`](crate::Options::off_cpu_mean_ns), so that sums are right on average; of
    /// page faults 0.
    pub value: u64,
    /// Of `value` off CPU, the time that it could have run, where that is asked for ([`Waits`](crate::Waits)).
    pub run_queue_ns: u64,
    /// Which of [`Options::events`](crate::Options::events) it is of, where it is of one.
    pub event: u16,
    /// On CPU 1; off CPU how many times of being off a CPU it stands for; how many page faults.
    pub count: u32,
    /// Id of its cgroup in the v2 hierarchy: the inode number of the directory.
    pub cgroup_id: u64,
    /// When the process started, CLOCK_BOOTTIME in nanoseconds: tells reused process ids apart.
    pub process_start_ns: u64,
    /// The thread's name, at most 15 bytes.
    pub comm: &'a OsStr,
    /// How the walk of the user stack ended in the kernel.
    pub result: WalkResult,
    /// Whether it was interrupted in the kernel.
    pub in_kernel: bool,
    /// Whether the process's mappings were known.
    pub process_known: bool,
    /// Whether a stack copy would have been needed and was refused by its rate limit.
    pub copy_limited: bool,
    /// Off CPU though it could have run: another task took its CPU.
    pub was_preempted: bool,
    /// The lock that it waited for, unless that is not asked for ([`Waits`](crate::Waits)).
    pub lock: Option<LockWait<'a>>,
    /// The span that it worked on, where its process says so
    /// ([`KernelTables::set_trace_source`](crate::KernelTables::set_trace_source)).
    pub trace: Option<TraceContext>,
    /// The name of the thread that ended the wait, at most 15 bytes; where that is asked for
    /// ([`Waits`](crate::Waits)) and it was not an interrupt.
    pub waker: Option<&'a OsStr>,
    /// When that was, where the stack of that thread was told; 0 elsewhere.
    pub(crate) woken_ns: u64,
    /// That thread when it ended the wait, with its stack, where that is asked for and there was room.
    pub waker_stack: Option<Box<Sample<'a>>>,
    /// What its program labels the work with, where that is told so.
    pub labels: ThreadLabels<'a>,
    /// Whether the kernel tried to walk the user stack. Of a thread that does not come back there is only
    /// `context`.
    pub is_walked: bool,
    /// Kernel addresses, innermost first: return addresses, except where interrupted.
    pub kernel_frames: &'a [u64],
    /// User addresses to symbolize, innermost first: return addresses are already moved by -1
    /// into their call, as [`candela_unwind::walk`] does.
    pub user_frames: &'a [u64],
    /// Registers and stack, where the walk ended with `NoMapping` or `NoTable`: walk these with
    /// [`candela_unwind::walk`] instead of using `user_frames`.
    pub context: Option<UserContext<'a>>,
}

/// A span of a distributed trace, as the W3C's Trace Context has it: bytes in the order of their hexadecimal
/// digits. Either id may be zeros, which is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: [u8; 16],
    /// The span in it.
    pub span_id: [u8; 8],
}

/// What a sampled allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Where it is, in its process.
    pub address: u64,
    /// Bytes asked for.
    pub size: u64,
    /// Tells it from others of the process that had the address before, and from those of other processes that
    /// were forked from one another.
    pub sequence: u32,
    /// Whether its end will be told.
    pub is_followed: bool,
    /// The mean distance between sampled bytes: the sample was one with the probability
    /// `1 - exp(-size / interval)`. 0: all allocations are samples.
    pub interval: u64,
    /// So many of such samples it stands for, itself among them ([`Pace::allocations_per_sample`](crate::Pace)).
    pub stands_for: u64,
}

/// A wait in futex(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockWait<'a> {
    /// The address of the futex in the process.
    pub address: u64,
    /// The name of the thread that held it when the wait began, at most 15 bytes: mutexes of the GNU C library
    /// and those with priority inheritance have its id in them.
    pub holder: Option<&'a OsStr>,
}

/// Where user space starts its own walk of a sample.
#[derive(Clone, Copy, Debug)]
pub struct UserContext<'a> {
    /// All general registers and rip.
    pub registers: Registers,
    /// The stack from rsp upwards, as much as was readable and allowed; may be empty.
    pub stack: StackCopy<'a>,
}

/// An executable mapping that has just been made.
#[derive(Debug)]
pub struct Mapped<'a> {
    /// Process id.
    pub pid: u32,
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    /// First address.
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// Offset in the file, in bytes.
    pub file_offset: u64,
    /// Which file.
    pub file: FileIdentity<'a>,
    /// Path in the process's mount namespace; `//anon`, `[vdso]` and the like where there is no file.
    pub path: &'a OsStr,
}

/// Which file is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileIdentity<'a> {
    /// Device and inode (both zero: no file).
    Inode {
        /// Major device number.
        major: u32,
        /// Minor device number.
        minor: u32,
        /// Inode number.
        inode: u64,
        /// Generation of the inode, where the file system has one.
        generation: u64,
    },
    /// The GNU build id, with [`Options::mapped_build_ids`](crate::Options::mapped_build_ids) where the file has one.
    BuildId(&'a [u8]),
}
