//! The day: when profiles begin and end, and how much there is to do.

use std::f64::consts::TAU;
use std::time::Duration;

use crate::truths::REGRESSION;
use crate::truths::RENAME;

/// How much of the past there is.
pub const DAY: Duration = Duration::from_secs(24 * 3600);

pub(crate) const SECOND_NS: i64 = 1_000_000_000;
const MINUTE_S: i64 = 60;
const HOUR_S: i64 = 3600;
/// An agent's interval.
const FINE_S: i64 = 10;
/// The last hour is what a window shows first, so it is as an agent would have sent it.
const FINE_END_S: i64 = HOUR_S;
/// So it is around a deploy that somebody will look at from close by.
const FINE_AROUND_S: i64 = HOUR_S / 2;

/// The time of one profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Seconds from the end of the day to the start of the window: below 0.
    pub(crate) offset_s: i64,
    pub(crate) seconds: i64,
}

impl Window {
    pub(crate) fn duration_ns(self) -> i64 {
        self.seconds * SECOND_NS
    }

    /// What to draw random numbers by.
    pub(crate) fn key(self) -> u64 {
        self.offset_s.unsigned_abs()
    }

    /// Whether it is in the last hour, where single samples are told apart.
    pub(crate) fn is_recent(self) -> bool {
        self.offset_s >= -FINE_END_S
    }

    pub(crate) fn is_within(self, before_end: Duration, duration: Duration) -> bool {
        let start = -seconds(before_end);
        (start..start + seconds(duration)).contains(&self.offset_s)
    }

    pub(crate) fn is_after(self, before_end: Duration) -> bool {
        self.offset_s >= -seconds(before_end)
    }
}

/// The windows of a service from one offset until before another, both of whole minutes.
pub(crate) fn windows(service: &str, from_s: i64, to_s: i64) -> Vec<Window> {
    let mut windows = Vec::new();
    let mut minute = from_s;
    while minute < to_s {
        let seconds = if is_fine(service, minute) {
            FINE_S
        } else {
            MINUTE_S
        };
        let starts = (0..MINUTE_S / seconds).map(|index| minute + index * seconds);
        windows.extend(starts.map(|offset_s| Window { offset_s, seconds }));
        minute += MINUTE_S;
    }
    windows
}

fn is_fine(service: &str, minute: i64) -> bool {
    let deploys = [
        (REGRESSION.service, REGRESSION.before_end),
        (RENAME.service, RENAME.before_end),
    ];
    let is_near = |before_end| {
        let distance = minute + seconds(before_end);
        (-FINE_AROUND_S..FINE_AROUND_S).contains(&distance)
    };
    let mut deploys = deploys.into_iter();
    minute >= -FINE_END_S || deploys.any(|(name, at)| name == service && is_near(at))
}

/// How much there is to do, from 0 to 1: most at the regression, least at the rename twelve hours
/// before, and at both as much a while before as it is a while after.
pub(crate) fn load(window: Window) -> f64 {
    let middle_s = window.offset_s as f64 + window.seconds as f64 / 2.0;
    let from_peak_s = middle_s + REGRESSION.before_end.as_secs_f64();
    let angle = TAU * from_peak_s / DAY.as_secs_f64();
    0.62 + 0.3 * angle.cos() + 0.06 * (2.0 * angle).cos()
}

pub(crate) fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_the_day_without_holes() {
        for service in ["cart", REGRESSION.service, RENAME.service] {
            let windows = windows(service, -seconds(DAY), 0);
            let mut next = -seconds(DAY);
            for window in &windows {
                assert_eq!(window.offset_s, next, "{service}");
                next += window.seconds;
            }
            assert_eq!(next, 0, "{service}");
        }
    }

    #[test]
    fn load_is_even_around_the_deploys() {
        for before_end in [REGRESSION.before_end, RENAME.before_end] {
            let at = -seconds(before_end);
            let sum = |from: i64| -> f64 {
                windows("cart", from, from + HOUR_S)
                    .into_iter()
                    .map(load)
                    .sum()
            };
            assert!((sum(at - HOUR_S) / sum(at) - 1.0).abs() < 1e-6);
        }
    }
}
