//! When windows end.

use std::time::Duration;

use candela_ebpf::Clock;
use twox_hash::XxHash3_128;

/// The ends of windows on the clock of the wall.
///
/// Windows keep their place in each minute, so that in a time series of their length each step has
/// one: windows that drift leave gaps and double steps. Hosts differ in the place, by their names,
/// so that a fleet does not send all at once; it is never near the border of a step.
#[derive(Debug)]
pub(crate) struct Schedule {
    window_ns: u64,
    phase_ns: u64,
    /// The next end, CLOCK_MONOTONIC in nanoseconds.
    pub(crate) next_ns: u64,
}

impl Schedule {
    /// The first window has its own length, which is that to the first picture after a start.
    pub(crate) fn new(host: &str, window: Duration, first_window: Duration, start_ns: u64) -> Self {
        let window_ns = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        let first_ns = u64::try_from(first_window.as_nanos()).unwrap_or(u64::MAX);
        let middle_ns = window_ns / 4 * 3;
        let place = XxHash3_128::oneshot(host.as_bytes()) as u64 % middle_ns.max(1);
        Self {
            window_ns,
            phase_ns: window_ns / 8 + place,
            next_ns: start_ns.saturating_add(first_ns),
        }
    }

    /// A window has ended: the next one ends at its place, unless that is almost now.
    pub(crate) fn advance(&mut self, now_ns: u64, clock: Clock) {
        let unix_ns = u64::try_from(clock.unix_ns(now_ns)).unwrap_or(0);
        let past_ns = (unix_ns + self.window_ns - self.phase_ns) % self.window_ns;
        let left_ns = self.window_ns - past_ns;
        let is_short = left_ns < self.window_ns / 4;
        let length_ns = if is_short {
            left_ns + self.window_ns
        } else {
            left_ns
        };
        self.next_ns = now_ns.saturating_add(length_ns);
    }
}
