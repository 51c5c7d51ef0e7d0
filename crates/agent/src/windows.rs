//! The windows of a source: one for each kind of sample that it takes.

use crate::window::Window;

/// What a sample is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleKind {
    /// What a thread did on a CPU.
    OnCpu,
    /// What a thread waited for.
    OffCpu,
    /// Which lock a thread waited for.
    Lock,
    /// Where memory was touched that was not there.
    Fault,
}

/// One window for each kind; those of kinds that are not taken stay empty.
#[derive(Debug)]
pub(crate) struct Windows {
    on_cpu: Window,
    off_cpu: Window,
    lock: Window,
    fault: Window,
}

// === impl Windows ===

impl Windows {
    /// Empty windows. With `keeps_times` each sample is kept with its time and thread.
    pub(crate) fn new(keeps_times: bool) -> Self {
        Self {
            on_cpu: Window::new(keeps_times),
            off_cpu: Window::new(keeps_times),
            lock: Window::new(keeps_times),
            fault: Window::new(keeps_times),
        }
    }

    pub(crate) fn of(&mut self, kind: SampleKind) -> &mut Window {
        match kind {
            SampleKind::OnCpu => &mut self.on_cpu,
            SampleKind::OffCpu => &mut self.off_cpu,
            SampleKind::Lock => &mut self.lock,
            SampleKind::Fault => &mut self.fault,
        }
    }
}
