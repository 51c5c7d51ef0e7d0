//! When profiles were taken: the time that rates are averages over.
//!
//! A rate over the range that was asked for, or over the steps of a chart, says too little wherever a
//! profiler was not there all the time, and too much where the first window is taken for a moment.

use std::ops::Range;

use crate::profile::ProfileSeries;

/// Windows that are kept apart before those that touch are put together.
const WINDOWS_APART: usize = 1024;

/// The windows of profiles, put together: what several profiles cover counts once. Profiles that do
/// not say how long they took cover nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfiledTime {
    windows: Vec<Range<i64>>,
    /// So many of the first windows are ascending and do not touch.
    in_order: usize,
}

impl ProfiledTime {
    /// That of these series.
    #[must_use]
    pub fn of<'a>(series: impl IntoIterator<Item = &'a ProfileSeries>) -> Self {
        let mut time = Self::default();
        for series in series {
            time.add(series.start_ns, series.duration_ns);
        }
        time.put_together();
        time
    }

    /// Adds the window of a profile.
    pub fn add(&mut self, start_ns: i64, duration_ns: i64) {
        if duration_ns > 0 {
            self.add_window(start_ns..start_ns.saturating_add(duration_ns));
        }
    }

    /// Adds all windows of another.
    pub fn add_all(&mut self, other: &Self) {
        for window in &other.windows {
            self.add_window(window.clone());
        }
    }

    fn add_window(&mut self, window: Range<i64>) {
        // Profiles of a series mostly come one after another.
        if let Some(last) = self.windows.last_mut()
            && last.start <= window.start
            && is_continued(last, &window)
        {
            last.end = last.end.max(window.end);
            return;
        }
        self.windows.push(window);
        if self.windows.len() > 2 * self.in_order + WINDOWS_APART {
            self.put_together();
        }
    }

    /// Makes one window of those that touch. What is asked about afterwards is asked of these.
    pub fn put_together(&mut self) {
        self.windows.sort_unstable_by_key(|window| window.start);
        self.windows.dedup_by(|next, last| {
            let is_next = is_continued(last, next);
            if is_next {
                last.end = last.end.max(next.end);
            }
            is_next
        });
        self.in_order = self.windows.len();
    }

    /// Windows in memory.
    #[must_use]
    pub fn window_count(&self) -> usize {
        self.windows.len()
    }

    /// Nanoseconds in all.
    #[must_use]
    pub fn length_ns(&self) -> i64 {
        self.length_within(i64::MIN..i64::MAX)
    }

    /// The same; `None` where no profile says how long it took.
    #[must_use]
    pub fn known_length_ns(&self) -> Option<i64> {
        Some(self.length_ns()).filter(|length_ns| *length_ns > 0)
    }

    /// Nanoseconds within a range.
    #[must_use]
    pub fn length_within(&self, range: Range<i64>) -> i64 {
        debug_assert!(self.in_order == self.windows.len(), "not put together");
        let first = self
            .windows
            .partition_point(|window| window.end <= range.start);
        let windows = self.windows[first..].iter();
        let windows = windows.take_while(|window| window.start < range.end);
        let lengths = windows.map(|window| {
            let end_ns = window.end.min(range.end);
            end_ns.saturating_sub(window.start.max(range.start))
        });
        lengths.fold(0, i64::saturating_add)
    }
}

/// Whether a window goes on with what one that starts before it began. Between two windows of a profiler
/// there are moments; a thousandth of a window changes no rate that anybody reads.
fn is_continued(last: &Range<i64>, next: &Range<i64>) -> bool {
    let length = |window: &Range<i64>| window.end.saturating_sub(window.start);
    let moment = length(last).min(length(next)) / 1000;
    next.start <= last.end.saturating_add(moment)
}

/// Sorts windows and makes one of those that touch.
pub(crate) fn merge_windows(windows: &mut Vec<Range<i64>>) {
    windows.sort_unstable_by_key(|window| window.start);
    windows.dedup_by(|next, last| {
        let touches = next.start <= last.end;
        if touches {
            last.end = last.end.max(next.end);
        }
        touches
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time_of(windows: &[(i64, i64)]) -> ProfiledTime {
        let mut time = ProfiledTime::default();
        for &(start_ns, duration_ns) in windows {
            time.add(start_ns, duration_ns);
        }
        time.put_together();
        time
    }

    #[test]
    fn what_several_profiles_cover_counts_once() {
        let cases: [(&[(i64, i64)], i64); 9] = [
            (&[], 0),
            (&[(5, 10)], 10),
            (&[(5, 10), (15, 10)], 20),
            (&[(5, 10), (40, 10)], 20),
            (&[(40, 10), (0, 10), (5, 10)], 25),
            (&[(0, 100), (10, 10), (150, 0), (160, -5)], 100),
            (&[(i64::MAX - 5, 10)], 5),
            (&[(0, 10_000), (10_010, 10_000)], 20_010),
            (&[(0, 10_000), (10_011, 10_000)], 20_000),
        ];
        for (windows, length_ns) in cases {
            assert_eq!(time_of(windows).length_ns(), length_ns, "{windows:?}");
        }
    }

    #[test]
    fn a_range_has_the_parts_of_windows_that_lie_in_it() {
        let time = time_of(&[(0, 10), (20, 10), (40, 10)]);
        for (range, length_ns) in [
            (0..50, 30),
            (5..45, 20),
            (10..20, 0),
            (22..25, 3),
            (60..70, 0),
        ] {
            assert_eq!(time.length_within(range.clone()), length_ns, "{range:?}");
        }
    }

    #[test]
    fn ten_thousand_hosts_in_step_take_the_windows_of_one() {
        let mut time = ProfiledTime::default();
        for host in 0..10_000 {
            for window in 0..10 {
                time.add(window * 1000 + host % 7, 900);
            }
        }
        assert!(
            time.window_count() < 3 * WINDOWS_APART,
            "{}",
            time.window_count()
        );
        time.put_together();
        assert_eq!((time.window_count(), time.length_ns()), (10, 9060));
    }
}
