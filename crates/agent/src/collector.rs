//! What a source of samples is.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use candela_ebpf::Pace;
use candela_ebpf::ProgramCost;

use crate::cpu::EventCounts;
use crate::error::AgentError;
use crate::status::SourceStatus;
use crate::symbolize::Scale;
use crate::windows::WindowId;
use crate::windows::Windows;

/// What a source has done so far; counts only grow.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceWork {
    /// Ticks of the clock of CPUs that were busy with what is sampled.
    pub(crate) ticks: u64,
    pub(crate) events: EventCounts,
    /// What its programs cost, as far as it was measured.
    pub(crate) programs: Vec<ProgramCost>,
}

/// A source of samples: one struct per source. It is polled by one thread and never waits for
/// anything but its source.
pub(crate) trait Collector {
    /// The windows that it fills.
    fn windows(&self) -> Vec<WindowId>;

    /// What the values of samples of a window are.
    fn scale(&self, window: WindowId) -> Scale;

    /// Samples for nobody until what is seen to run has its unwind tables, so that a recording of a
    /// second is as complete as one of a minute. Nothing of it is counted.
    fn warm_up(&mut self, stop: &AtomicBool) -> Result<(), AgentError>;

    /// Keeps only samples of a process and of those that it will fork. The kernel follows forks of
    /// this process, which may have children that nobody asked for.
    fn only_family_of(&mut self, pid: u32);

    /// Whether a process of the family may still run.
    fn has_family_left(&self) -> bool;

    /// The first window begins (CLOCK_MONOTONIC, nanoseconds): what was before is left out.
    fn starts_at(&mut self, start_ns: u64) -> Result<(), AgentError>;

    /// Waits for samples, for `timeout` at most, and adds them to `windows`.
    fn collect(&mut self, timeout: Duration, windows: &mut Windows) -> Result<(), AgentError>;

    /// A window ends: adds what threads wait for up to `end_ns` (CLOCK_MONOTONIC) and will go on waiting for, where
    /// that is seen.
    fn close(&mut self, _end_ns: u64, _windows: &mut Windows) -> Result<(), AgentError> {
        Ok(())
    }

    /// Adds the samples up to `end_ns` (CLOCK_MONOTONIC) that still wait for something, as they are
    /// where waiting does not help, and closes the last window. Later samples are left out from now on.
    fn settle(&mut self, end_ns: u64, windows: &mut Windows) -> Result<(), AgentError>;

    /// Called after each window: the time to let go of what was not needed in it.
    fn sweep(&mut self);

    /// Brings the drop ledger up to date and tells how the source is doing.
    fn status(&mut self) -> SourceStatus;

    /// What it has done so far.
    fn work(&self) -> SourceWork;

    /// Lets the kernel measure the run time of its programs from now on, or not any more, if it has any.
    fn measure_programs(&mut self, _is_on: bool) -> Result<(), AgentError> {
        Ok(())
    }

    /// How much it samples.
    fn pace(&self) -> Pace {
        Pace::default()
    }

    /// Changes how much it samples from now on, where that can be done.
    fn set_pace(&mut self, _pace: Pace) -> Result<(), AgentError> {
        Err(AgentError::FixedPace)
    }
}
