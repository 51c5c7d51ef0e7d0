//! Samples with a stack copy that wait for unwind tables.

use std::sync::Arc;

use candela_ebpf::Sample;
use candela_ebpf::UserContext;
use candela_unwind::Registers;
use candela_unwind::StackCopy;
use candela_unwind::WalkResult;
use candela_unwind::walk;

use crate::allocations::callers_of_library;
use crate::cpu::raw_stack::tells_locks;
use crate::cpu::worth::Worth;
use crate::kinds::Kind;
use crate::processes::Object;
use crate::sample_context::SampleContext;
use crate::tables::ProcessSpace;
use crate::tables::TableSlots;
use crate::window::Moment;
use crate::window::ProcessView;
use crate::window::RawStack;
use crate::window::WaitedLock;
use crate::window::WakerStack;
use crate::windows::Destination;
use crate::windows::WindowId;
use crate::windows::Windows;

/// Frames per user stack, as in the kernel.
const MOST_USER_FRAMES: usize = 256;

/// A sample that could not be walked yet.
#[derive(Debug)]
pub(crate) struct PendingSample {
    pub(crate) process: ProcessView,
    destination: Destination,
    worth: Worth,
    was_preempted: bool,
    told: ToldOfSample,
    time_ns: u64,
    tid: u32,
    cpu: u32,
    thread_name: String,
    is_in_kernel: bool,
    kernel: Vec<u64>,
    registers: Registers,
    stack_base: u64,
    stack: Vec<u8>,
}

/// What a sample tells besides its stack.
#[derive(Clone, Debug)]
pub(crate) struct ToldOfSample {
    pub(crate) lock: Option<WaitedLock>,
    /// What its thread worked on.
    pub(crate) work: Option<SampleContext>,
    pub(crate) waker: Option<WakerStack>,
}

/// What a walk of a stack copy came to.
#[derive(Debug)]
pub(crate) struct Walked {
    pub(crate) result: WalkResult,
    /// The object whose table would have led on.
    pub(crate) missing: Option<Arc<Object>>,
}

/// Walks a stack copy with the tables that are there; `frames` gets the frames.
pub(crate) fn walk_copy(
    process: &ProcessView,
    tables: &mut TableSlots,
    registers: &Registers,
    stack: StackCopy<'_>,
    frames: &mut Vec<u64>,
) -> Walked {
    frames.clear();
    let space = ProcessSpace::new(&process.mappings, tables);
    let result = walk(registers, &stack, &space, MOST_USER_FRAMES, frames);
    let notes = space.into_notes();
    for slot in notes.used {
        tables.used(slot);
    }
    // A table may be missing at a frame that another table led to; only the end of the walk counts.
    let missing = notes.missing.filter(|_| result == WalkResult::NoTable);
    Walked { result, missing }
}

/// The user frames that stacks of these windows have.
pub(crate) fn shown_frames<'a>(
    destination: Destination,
    process: &ProcessView,
    user: &'a [u64],
) -> &'a [u64] {
    let mut windows = destination.windows();
    match windows.any(|id| id == WindowId::Kind(Kind::Alloc)) {
        true => callers_of_library(process, user),
        false => user,
    }
}

impl PendingSample {
    pub(crate) fn new(
        process: ProcessView,
        destination: Destination,
        worth: Worth,
        sample: &Sample<'_>,
        told: ToldOfSample,
        context: &UserContext<'_>,
    ) -> Self {
        Self {
            process,
            destination,
            worth,
            was_preempted: sample.was_preempted,
            told,
            time_ns: sample.time_ns,
            tid: sample.tid,
            cpu: sample.cpu,
            thread_name: sample.comm.to_string_lossy().into_owned(),
            is_in_kernel: sample.in_kernel,
            kernel: sample.kernel_frames.to_vec(),
            registers: context.registers,
            stack_base: context.stack.base,
            stack: context.stack.bytes.to_vec(),
        }
    }

    /// Heap in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let waker = self.told.waker.as_ref();
        let of_waker = waker.map_or(0, |waker| waker.kernel.len() + waker.user.len());
        let work = self.told.work.as_ref();
        let of_work = work.map_or(0, SampleContext::label_bytes);
        let addresses = self.kernel.len() + of_waker;
        size_of::<Self>() + self.stack.len() + of_work + addresses * size_of::<u64>()
    }

    /// CLOCK_MONOTONIC, nanoseconds.
    pub(crate) fn time_ns(&self) -> u64 {
        self.time_ns
    }

    pub(crate) fn walk(&self, tables: &mut TableSlots, frames: &mut Vec<u64>) -> Walked {
        let stack = StackCopy {
            base: self.stack_base,
            bytes: &self.stack,
        };
        walk_copy(&self.process, tables, &self.registers, stack, frames)
    }

    pub(crate) fn add_to(&self, windows: &mut Windows, frames: &[u64], result: WalkResult) {
        let mut stack = RawStack {
            kernel: &self.kernel,
            user: shown_frames(self.destination, &self.process, frames),
            result,
            is_in_kernel: self.is_in_kernel,
            was_preempted: self.was_preempted,
            lock: None,
            context: self.told.work.as_ref(),
            waker: self.told.waker.as_ref(),
        };
        let moment = Moment {
            time_ns: self.time_ns,
            tid: self.tid,
            thread_name: &self.thread_name,
            cpu: Some(self.cpu),
            allocation: self.worth.allocation,
        };
        for id in self.destination.windows() {
            stack.lock = self.told.lock.as_ref().filter(|_| tells_locks(id));
            windows.add(id, &self.process, &stack, moment, self.worth.amount(id));
        }
    }
}
