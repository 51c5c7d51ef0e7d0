//! Waiting for unwind tables: before a recording begins, while it goes on, and at its end.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use candela_ebpf::monotonic_ns;

use crate::cpu::state::CpuState;
use crate::error::AgentError;
use crate::windows::Windows;

/// While samples wait for the loader, its answers are looked for this often.
const POLL_WITH_PENDING: Duration = Duration::from_millis(5);

/// How long the end waits for tables.
const SETTLE_NS: u64 = 1_000_000_000;

/// At 99 Hz what runs for a tenth of this is seen in it; what is not comes with stack copies later.
const SHORTEST_WARM_UP_NS: u64 = 200_000_000;

/// Whoever waits for a recording should not wait for much else.
const LONGEST_WARM_UP_NS: u64 = 3_000_000_000;

/// How late the end of the warm-up is noticed.
const WARM_UP_POLL: Duration = Duration::from_millis(20);

/// A sampler with the state that its events change.
pub(super) trait Polled {
    fn state(&mut self) -> &mut CpuState;

    /// Hands the events of the next `timeout` at most to the state.
    fn poll(&mut self, timeout: Duration, windows: &mut Windows) -> Result<(), AgentError>;
}

/// One round of events, and what of the earlier ones has its tables now.
pub(super) fn collect(
    source: &mut impl Polled,
    timeout: Duration,
    windows: &mut Windows,
) -> Result<(), AgentError> {
    let timeout = match source.state().has_pending() {
        true => timeout.min(POLL_WITH_PENDING),
        false => timeout,
    };
    source.poll(timeout, windows)?;
    source.state().take_replies(windows);
    Ok(())
}

/// Goes on since `start_ns` (CLOCK_MONOTONIC) until all that was seen to run has its tables. What has no end, such as a
/// host on which programs come and go, ends after [`LONGEST_WARM_UP_NS`].
pub(super) fn collect_until_tables(
    source: &mut impl Polled,
    start_ns: u64,
    nobodys: &mut Windows,
    stop: &AtomicBool,
) -> Result<(), AgentError> {
    let elapsed_ns = || monotonic_ns() - start_ns;
    while !stop.load(Ordering::Relaxed) && elapsed_ns() < LONGEST_WARM_UP_NS {
        collect(source, WARM_UP_POLL, nobodys)?;
        if elapsed_ns() >= SHORTEST_WARM_UP_NS && !source.state().awaits_tables() {
            break;
        }
    }
    Ok(())
}

/// The last round: what still has no tables after a moment is added as it is.
pub(super) fn collect_rest(
    source: &mut impl Polled,
    windows: &mut Windows,
) -> Result<(), AgentError> {
    let deadline_ns = monotonic_ns() + SETTLE_NS;
    collect(source, Duration::ZERO, windows)?;
    while source.state().has_pending() && monotonic_ns() < deadline_ns {
        collect(source, POLL_WITH_PENDING, windows)?;
    }
    source.state().give_up_pending(windows);
    Ok(())
}
