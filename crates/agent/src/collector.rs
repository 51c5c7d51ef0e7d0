//! What a source of samples is.

use std::time::Duration;

use candela_model::ProfileType;

use crate::error::AgentError;
use crate::status::SourceStatus;
use crate::window::Window;

/// A source of samples: one struct per source. It is polled by one thread and never waits for
/// anything but its source.
pub(crate) trait Collector {
    /// What the values of its samples are.
    fn profile_type(&self) -> ProfileType;

    /// The value of one sample, which is also the period.
    fn period(&self) -> i64;

    /// Waits for samples, for `timeout` at most, and adds them to `window`.
    fn collect(&mut self, timeout: Duration, window: &mut Window) -> Result<(), AgentError>;

    /// Adds the samples up to `end_ns` (CLOCK_MONOTONIC) that still wait for something, as they are
    /// where waiting does not help. Later samples are left out from now on.
    fn settle(&mut self, end_ns: u64, window: &mut Window) -> Result<(), AgentError>;

    /// Called after each window: the time to let go of what was not needed in it.
    fn sweep(&mut self);

    /// Brings the drop ledger up to date and tells how the source is doing.
    fn status(&mut self) -> SourceStatus;
}
