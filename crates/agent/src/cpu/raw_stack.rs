//! What a window needs of a sample.

use candela_ebpf::Sample;
use candela_unwind::WalkResult;

use crate::cpu::worth::Worth;
use crate::kinds::Kind;
use crate::sample_context::SampleContext;
use crate::window::Moment;
use crate::window::ProcessView;
use crate::window::RawStack;
use crate::window::WaitedLock;
use crate::window::WakerStack;
use crate::windows::WindowId;
use crate::windows::Windows;

/// Whether the samples of a window say for which lock they waited.
pub(crate) fn tells_locks(window: WindowId) -> bool {
    matches!(window, WindowId::Kind(Kind::Lock | Kind::KernelLock))
}

pub(crate) fn waited_lock(sample: &Sample<'_>) -> Option<WaitedLock> {
    let wait = sample.lock?;
    let holder = wait.holder.map(|name| name.to_string_lossy().into_owned());
    Some(WaitedLock {
        address: wait.address,
        holder,
    })
}

pub(crate) fn raw_stack<'a>(
    sample: &'a Sample<'_>,
    lock: Option<&'a WaitedLock>,
    (context, waker): (Option<&'a SampleContext>, Option<&'a WakerStack>),
    user: &'a [u64],
    result: WalkResult,
) -> RawStack<'a> {
    RawStack {
        kernel: sample.kernel_frames,
        user,
        result,
        is_in_kernel: sample.in_kernel,
        was_preempted: sample.was_preempted,
        lock,
        context,
        waker,
    }
}

pub(crate) fn add(
    windows: &mut Windows,
    process: &ProcessView,
    sample: &Sample<'_>,
    stack: &RawStack<'_>,
    (worth, id): (Worth, WindowId),
) {
    let thread_name = sample.comm.to_string_lossy();
    let moment = Moment {
        time_ns: sample.time_ns,
        tid: sample.tid,
        thread_name: &thread_name,
        cpu: Some(sample.cpu),
        allocation: worth.allocation,
    };
    windows.add(id, process, stack, moment, worth.amount(id));
}
