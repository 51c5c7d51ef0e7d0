//! What a source of samples is.

use std::time::Duration;

use crate::error::AgentError;
use crate::status::SourceStatus;
use crate::symbolize::Scale;
use crate::windows::WindowId;
use crate::windows::Windows;

/// A source of samples: one struct per source. It is polled by one thread and never waits for
/// anything but its source.
pub(crate) trait Collector {
    /// The windows that it fills.
    fn windows(&self) -> Vec<WindowId>;

    /// What the values of samples of a window are.
    fn scale(&self, window: WindowId) -> Scale;

    /// The first window begins (CLOCK_MONOTONIC, nanoseconds): what was before is left out.
    fn starts_at(&mut self, start_ns: u64) -> Result<(), AgentError>;

    /// Waits for samples, for `timeout` at most, and adds them to `windows`.
    fn collect(&mut self, timeout: Duration, windows: &mut Windows) -> Result<(), AgentError>;

    /// A window ends: adds what threads wait for up to `end_ns` (CLOCK_MONOTONIC) and will go on waiting for.
    fn close(&mut self, end_ns: u64, windows: &mut Windows) -> Result<(), AgentError>;

    /// Adds the samples up to `end_ns` (CLOCK_MONOTONIC) that still wait for something, as they are
    /// where waiting does not help, and closes the last window. Later samples are left out from now on.
    fn settle(&mut self, end_ns: u64, windows: &mut Windows) -> Result<(), AgentError>;

    /// Called after each window: the time to let go of what was not needed in it.
    fn sweep(&mut self);

    /// Brings the drop ledger up to date and tells how the source is doing.
    fn status(&mut self) -> SourceStatus;
}
