//! The stack of the thread that ended a wait.

use candela_ebpf::Sample;
use candela_unwind::WalkResult;

use crate::cpu::pending::walk_copy;
use crate::cpu::state::CpuState;
use crate::window::ProcessView;
use crate::window::WakerStack;

impl CpuState {
    /// The stack of who ended the wait of a sample; `None` where that was not told. It is walked with the tables that
    /// are there now: what the kernel could not walk is a part of the next ones.
    pub(super) fn waker_of(&mut self, sample: &Sample<'_>) -> Option<WakerStack> {
        let waker = sample.waker_stack.as_deref()?;
        let (process, user) = self.walked_waker(waker);
        Some(WakerStack {
            process,
            kernel: waker.kernel_frames.to_vec(),
            user,
        })
    }

    fn walked_waker(&mut self, waker: &Sample<'_>) -> (ProcessView, Vec<u64>) {
        let mut frames = waker.user_frames.to_vec();
        if waker.result == WalkResult::KernelOnly {
            return (self.kernel_thread(waker.pid), frames);
        }
        let process = self.processes.sampled(waker.pid, waker.process_start_ns);
        let Some(process) = process else {
            return (self.unknown_process(waker), frames);
        };
        let view = self.naming.view_of(process, waker);
        if !matches!(waker.result, WalkResult::NoMapping | WalkResult::NoTable) {
            return (view, frames);
        }
        let view = self.help_next_walk(view, waker);
        let Some(context) = &waker.context else {
            return (view, frames);
        };
        let (registers, stack) = (&context.registers, context.stack);
        let walked = walk_copy(&view, &mut self.tables, registers, stack, &mut frames);
        if let Some(object) = walked.missing {
            self.tables.request(&object, &self.loader);
        }
        (view, frames)
    }
}
