//! When a dump ends and the next one begins.

use std::time::Duration;

/// How long after its end a window may come: symbols take their time.
const PATIENCE: Duration = Duration::from_secs(5);

/// Ends dumps between windows, by the time that their samples have.
///
/// That time is the clock on the wall, which may be set while a dump is written. A clock that went back would never
/// come to the end of the dump, so the time since boot ends it, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rotation {
    length: Duration,
    window: Duration,
    /// Of the dump, on the clock of samples.
    began_ns: i64,
    /// The same since boot.
    began: Duration,
}

impl Rotation {
    pub(crate) fn new(length: Duration, window: Duration, began_ns: i64, now: Duration) -> Self {
        Self {
            length,
            window,
            began_ns,
            began: now,
        }
    }

    /// A window has come that begins then: when the dump is over before it, that is where the next one begins.
    pub(crate) fn ends_before(&mut self, window_start_ns: i64, now: Duration) -> Option<i64> {
        if window_start_ns < self.began_ns.saturating_sub(nanoseconds(self.window)) {
            // The clock was set back. The dump goes on, and is over in time by the other clock.
            self.began_ns = window_start_ns;
            return None;
        }
        // Windows end where the wall's clock says, so they are a little longer or shorter than each other.
        let end_ns = self.began_ns.saturating_add(nanoseconds(self.length));
        if window_start_ns.saturating_add(nanoseconds(self.window / 2)) < end_ns {
            return None;
        }
        self.began_ns = window_start_ns;
        // It comes when it is over.
        self.began = now.saturating_sub(self.window);
        Some(window_start_ns)
    }

    /// No window has come that would have ended the dump: where the next one begins.
    pub(crate) fn is_overdue(&mut self, now: Duration) -> Option<i64> {
        if now < self.began + self.length + self.window + PATIENCE {
            return None;
        }
        // Dumps of nothing begin as steadily as others.
        self.began += self.length;
        self.began_ns = self.began_ns.saturating_add(nanoseconds(self.length));
        Some(self.began_ns)
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const SECOND_NS: i64 = 1_000_000_000;

    fn rotation() -> Rotation {
        Rotation::new(60 * SECOND, 10 * SECOND, 1000 * SECOND_NS, 50 * SECOND)
    }

    #[test]
    fn dumps_end_between_windows() {
        let mut rotation = rotation();
        let mut begins = Vec::new();
        // The first is short, and the places of all others differ from the dump's.
        let starts = std::iter::once(1000).chain((0..13).map(|number| 1003 + 10 * number));
        for start in starts {
            let now = Duration::from_secs(start - 1000 + 60 + 1);
            begins.extend(rotation.ends_before(start as i64 * SECOND_NS, now));
            assert_eq!(rotation.is_overdue(now), None, "at {start}");
        }
        assert_eq!(begins, [1063 * SECOND_NS, 1123 * SECOND_NS]);
    }

    #[test]
    fn dumps_of_nothing_end_too() {
        let mut rotation = rotation();
        assert_eq!(rotation.is_overdue(124 * SECOND), None);
        assert_eq!(rotation.is_overdue(125 * SECOND), Some(1060 * SECOND_NS));
        assert_eq!(rotation.is_overdue(126 * SECOND), None);
        assert_eq!(rotation.is_overdue(185 * SECOND), Some(1120 * SECOND_NS));
    }

    #[test]
    fn a_clock_that_is_set_back_makes_no_dump_endless() {
        let mut rotation = rotation();
        for number in 0..6 {
            let start_ns = (100 + 10 * number) * SECOND_NS;
            let now = Duration::from_secs(60 + 10 * number as u64);
            assert_eq!(rotation.ends_before(start_ns, now), None);
        }
        let began = rotation.ends_before(160 * SECOND_NS, 120 * SECOND);
        assert_eq!(began, Some(160 * SECOND_NS));
    }

    #[test]
    fn a_clock_that_is_set_forward_ends_a_dump() {
        let mut rotation = rotation();
        let began = rotation.ends_before(9000 * SECOND_NS, 61 * SECOND);
        assert_eq!(began, Some(9000 * SECOND_NS));
        assert_eq!(rotation.ends_before(9010 * SECOND_NS, 71 * SECOND), None);
    }
}
