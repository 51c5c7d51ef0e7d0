//! From the kernel's clock to unix time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The distance between CLOCK_MONOTONIC, which stamps events, and unix time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    unix_minus_monotonic_ns: i128,
}

// === impl Clock ===

impl Clock {
    /// Reads both clocks. Repeat it now and then: the distance changes when the time is set.
    pub fn now() -> Clock {
        let before = i128::from(monotonic_ns());
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as i128);
        let after = i128::from(monotonic_ns());
        Clock {
            unix_minus_monotonic_ns: unix - (before + after) / 2,
        }
    }

    /// Nanoseconds since 1970 at the event time `monotonic_ns`.
    pub fn unix_ns(self, monotonic_ns: u64) -> i64 {
        let unix = i128::from(monotonic_ns) + self.unix_minus_monotonic_ns;
        i64::try_from(unix).unwrap_or(i64::MAX)
    }
}

/// CLOCK_MONOTONIC in nanoseconds, the clock of all event times.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CLOCK_BOOTTIME in nanoseconds, the clock of the times at which processes started.
pub(crate) fn boottime_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

/// One of the clocks that every kernel has.
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec that outlives the call. The call cannot fail: the clock exists.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32).as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_converts_to_now() {
        let unix_ns = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.expect("after 1970").as_nanos() as i64
        };
        let (before, monotonic_before) = (unix_ns(), monotonic_ns());
        let clock = Clock::now();
        let (monotonic_after, after) = (monotonic_ns(), unix_ns());
        // However long its own readings were apart: it takes the middle.
        assert!(before <= clock.unix_ns(monotonic_after));
        assert!(clock.unix_ns(monotonic_before) <= after);
    }
}
