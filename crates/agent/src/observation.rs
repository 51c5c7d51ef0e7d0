//! What a window is told of a sample.

use std::sync::Arc;

use candela_model::Labels;
use candela_unwind::WalkResult;

use crate::allocations::AllocationNumber;
use crate::labels::Unsettled;
use crate::processes::Mappings;
use crate::processes::ProcessIdentity;
use crate::sample_context::SampleContext;

/// What a sample needs to know of its process.
#[derive(Clone, Debug)]
pub(crate) struct ProcessView {
    pub(crate) identity: ProcessIdentity,
    pub(crate) labels: Arc<Labels>,
    pub(crate) unsettled: Option<Arc<Unsettled>>,
    pub(crate) mappings: Mappings,
}

/// A sample's stack, innermost frame first. User addresses are those to symbolize (return addresses
/// moved into their call); kernel addresses are as the kernel gives them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawStack<'a> {
    pub(crate) kernel: &'a [u64],
    pub(crate) user: &'a [u64],
    pub(crate) result: WalkResult,
    /// Whether the innermost kernel frame is the interrupted instruction.
    pub(crate) is_in_kernel: bool,
    /// Off CPU though it could have run, which the frames do not always tell.
    pub(crate) was_preempted: bool,
    /// What it waited for, where the window is of locks.
    pub(crate) lock: Option<&'a WaitedLock>,
    /// What its thread worked on, where that is told.
    pub(crate) context: Option<&'a SampleContext>,
    /// Who ended the wait, where that is told with its stack.
    pub(crate) waker: Option<&'a WakerStack>,
}

/// The stack on which a thread ended the wait of another one, innermost frame first.
#[derive(Clone, Debug)]
pub(crate) struct WakerStack {
    pub(crate) process: ProcessView,
    pub(crate) kernel: Vec<u64>,
    pub(crate) user: Vec<u64>,
}

/// A lock that a thread waited for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WaitedLock {
    /// Of its futex, in the process.
    pub(crate) address: u64,
    /// The name of the thread that held it, where that is known.
    pub(crate) holder: Option<String>,
}

/// What a sample stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) value: u64,
    /// Samples on CPU, times of being off a CPU, page faults.
    pub(crate) count: u64,
}

/// Who was sampled and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment<'a> {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub(crate) time_ns: u64,
    pub(crate) tid: u32,
    pub(crate) thread_name: &'a str,
    /// The CPU that it ran on, or came back to.
    pub(crate) cpu: Option<u32>,
    /// Which allocation it was, if any.
    pub(crate) allocation: AllocationNumber,
}
