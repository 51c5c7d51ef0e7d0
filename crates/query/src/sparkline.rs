//! The cost of a service by equal parts of the range.

use std::ops::Range;

use candela_model::ProfiledTime;
use candela_store::ProfileRow;
use candela_store::TimeRange;

/// Buckets of a sparkline.
pub const SPARKLINE_BUCKETS: usize = 40;

/// Values of profiles, spread evenly over their windows, by bucket.
#[derive(Debug)]
pub(crate) struct Spread([f64; SPARKLINE_BUCKETS]);

impl Default for Spread {
    fn default() -> Self {
        Self([0.0; SPARKLINE_BUCKETS])
    }
}

impl Spread {
    /// Adds a profile that starts in the range.
    pub(crate) fn add(&mut self, range: TimeRange, row: &ProfileRow, value: i64) {
        let first = bucket_at(range, row.start_ns);
        if row.duration_ns <= 0 {
            self.0[first] += value as f64;
            return;
        }
        let window = row.start_ns..row.start_ns.saturating_add(row.duration_ns);
        let last = bucket_at(range, window.end.min(range.to_ns).saturating_sub(1));
        let per_ns = value as f64 / row.duration_ns as f64;
        for bucket in first..=last {
            let inside = bucket_window(range, bucket);
            let end_ns = window.end.min(inside.end);
            let part_ns = end_ns.saturating_sub(window.start.max(inside.start));
            self.0[bucket] += per_ns * part_ns.max(0) as f64;
        }
    }

    /// The buckets as if each had been profiled from its beginning to its end.
    pub(crate) fn as_if_whole(
        &self,
        range: TimeRange,
        profiled: Option<&ProfiledTime>,
    ) -> Vec<i64> {
        let buckets = self.0.iter().enumerate();
        let whole = buckets.map(|(bucket, &sum)| {
            let inside = bucket_window(range, bucket);
            let length_ns = inside.end.saturating_sub(inside.start);
            let profiled_ns = profiled.map_or(0, |time| time.length_within(inside));
            if profiled_ns == 0 {
                return sum.round() as i64;
            }
            (sum * length_ns as f64 / profiled_ns as f64).round() as i64
        });
        whole.collect()
    }
}

/// The part of a range that a moment in it is in.
pub(crate) fn bucket_at(range: TimeRange, time_ns: i64) -> usize {
    let length = i128::from(range.to_ns) - i128::from(range.from_ns);
    let offset = i128::from(time_ns) - i128::from(range.from_ns);
    let bucket = (offset * SPARKLINE_BUCKETS as i128 / length.max(1)) as usize;
    bucket.min(SPARKLINE_BUCKETS - 1)
}

/// The moments of a part of a range.
fn bucket_window(range: TimeRange, bucket: usize) -> Range<i64> {
    let length = i128::from(range.to_ns) - i128::from(range.from_ns);
    let start_of = |bucket: usize| {
        let parts = SPARKLINE_BUCKETS as i128;
        // The first moment that counts to it.
        let offset = (length * bucket as i128 + parts - 1).div_euclid(parts);
        (i128::from(range.from_ns) + offset) as i64
    };
    start_of(bucket)..start_of(bucket + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: TimeRange = TimeRange {
        from_ns: 1000,
        to_ns: 5000,
    };

    fn sparkline(profiles: &[(i64, i64, i64)]) -> Vec<i64> {
        let mut spread = Spread::default();
        let mut time = ProfiledTime::default();
        for &(start_ns, duration_ns, value) in profiles {
            let row = ProfileRow {
                series: 0,
                profile_type: 0,
                start_ns,
                duration_ns,
                period: 0,
                total: value,
                first_row: 0,
                sample_count: 0,
                merged_profiles: 1,
            };
            time.add(start_ns, duration_ns);
            spread.add(RANGE, &row, value);
        }
        time.put_together();
        spread.as_if_whole(RANGE, Some(&time))
    }

    #[test]
    fn a_window_is_in_all_buckets_that_it_reaches() {
        let line = sparkline(&[(1050, 200, 400), (1250, 3800, 7600)]);
        assert_eq!(line, [200; SPARKLINE_BUCKETS]);
    }

    #[test]
    fn what_is_not_profiled_has_no_cost() {
        let line = sparkline(&[(1000, 50, 10), (1200, 100, 20), (4990, 0, 7)]);
        let mut expected = [0; SPARKLINE_BUCKETS];
        (expected[0], expected[2], expected[39]) = (20, 20, 7);
        assert_eq!(line, expected);
    }

    #[test]
    fn each_moment_is_in_the_window_of_its_bucket() {
        for length in [1, 7, 39, 40, 41, 4000] {
            let range = TimeRange {
                from_ns: -3,
                to_ns: length - 3,
            };
            for time_ns in range.from_ns..range.to_ns {
                let window = bucket_window(range, bucket_at(range, time_ns));
                assert!(window.contains(&time_ns), "{time_ns} of {range:?}");
            }
        }
    }
}
