//! Names of files: the second at which a file began, never twice.

use serde::Deserialize;
use serde::Serialize;

/// Ranges that are remembered; with more of them those that are nearest to each other become one.
const MOST_RANGES: usize = 32;

/// The seconds that names have stood for, each of which is an object in the bucket, perhaps.
///
/// A name is a second in UTC and nothing else, as the document's authors have it. So two files of one second, and
/// files of an hour that the clock shows a second time, would overwrite each other's objects. A second that was used
/// is therefore left for the next that was not: a name may be later than its file, by no more than the clock went
/// back, and names sort as files came. Not a suffix: `…-2` would need the names of all objects of the bucket to
/// know what is taken, and files of the node are deleted before those.
///
/// Ranges and not the last second alone: a clock that was once in a far year would put all later names there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct UsedSeconds {
    /// First and last of each, in order; between two there is at least one second.
    ranges: Vec<(i64, i64)>,
}

impl UsedSeconds {
    /// The first second from `now` on that was not used, which is used from here on.
    pub(crate) fn take(&mut self, now: i64) -> i64 {
        let covering = self
            .ranges
            .iter()
            .find(|(first, last)| (*first..=*last).contains(&now));
        let second = covering.map_or(now, |(_, last)| last.saturating_add(1));
        self.add(second);
        second
    }

    /// Marks a second as used.
    pub(crate) fn add(&mut self, second: i64) {
        let is_in = |(first, last): &(i64, i64)| (*first..=*last).contains(&second);
        if self.ranges.iter().any(is_in) {
            return;
        }
        let position = self.ranges.partition_point(|(first, _)| *first < second);
        self.ranges.insert(position, (second, second));
        self.join_after(position, 1);
        if let Some(before) = position.checked_sub(1) {
            self.join_after(before, 1);
        }
        while self.ranges.len() > MOST_RANGES {
            let gaps = self.ranges.windows(2).map(|pair| pair[1].0 - pair[0].1);
            let nearest = gaps.enumerate().min_by_key(|(_, gap)| *gap);
            let (position, gap) = nearest.expect("there is more than one range");
            // What lies between counts as used: a second too many costs nothing.
            self.join_after(position, gap);
        }
    }

    /// Makes one range of two that are no further apart than this.
    fn join_after(&mut self, position: usize, most_apart: i64) {
        let Some(&(next_first, next_last)) = self.ranges.get(position + 1) else {
            return;
        };
        let range = &mut self.ranges[position];
        if next_first.saturating_sub(range.1) <= most_apart {
            range.1 = next_last;
            self.ranges.remove(position + 1);
        }
    }
}

/// `20260220T153012`, in UTC.
pub(crate) fn timestamp(unix_seconds: i64) -> String {
    // Clocks of the far future have the last name that there is.
    let time = jiff::Timestamp::from_second(unix_seconds).unwrap_or(jiff::Timestamp::MAX);
    time.strftime("%Y%m%dT%H%M%S").to_string()
}

/// The second of a name.
pub(crate) fn second_of(name: &str) -> Option<i64> {
    let text = name.get(..15)?;
    let time = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%S", text).ok()?;
    let time = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(time.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_seconds_in_utc() {
        assert_eq!(timestamp(1_771_601_412), "20260220T153012");
        assert_eq!(
            second_of("20260220T153012-perf-data.gz"),
            Some(1_771_601_412)
        );
        assert_eq!(second_of("20260220T1530"), None);
        assert_eq!(second_of("2026-02-20T15:30"), None);
    }

    #[test]
    fn a_clock_that_was_in_a_far_year_is_forgiven() {
        let mut used = UsedSeconds::default();
        assert_eq!(used.take(4_000_000_000), 4_000_000_000);
        assert_eq!(used.take(1_000_000_000), 1_000_000_000);
        assert_eq!(used.take(1_000_000_000), 1_000_000_001);
        assert_eq!(used.take(4_000_000_000), 4_000_000_001);
    }

    #[test]
    fn an_hour_that_comes_twice_has_other_names_the_second_time() {
        let mut used = UsedSeconds::default();
        let first: Vec<i64> = (0..60)
            .map(|minute| used.take(10_000 + minute * 60))
            .collect();
        let second: Vec<i64> = (0..60)
            .map(|minute| used.take(10_000 + minute * 60))
            .collect();
        assert!(second.iter().all(|it| !first.contains(it)));
        let latest = second.iter().max().expect("sixty");
        assert!(*latest <= 10_000 + 60 * 60, "{latest}");
    }

    proptest! {
        #[test]
        fn no_second_is_used_twice(nows in proptest::collection::vec(-50_i64..200, 1..300)) {
            let mut used = UsedSeconds::default();
            let mut taken = BTreeSet::new();
            for now in nows {
                let second = used.take(now);
                prop_assert!(second >= now);
                prop_assert!(taken.insert(second), "{second} came twice");
                prop_assert!(used.ranges.len() <= MOST_RANGES);
                let apart = used.ranges.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0);
                prop_assert!(apart, "{:?}", used.ranges);
            }
        }
    }
}
