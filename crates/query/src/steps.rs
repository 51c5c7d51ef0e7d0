//! How lines divide time.

use std::ops::Range;

use candela_store::Tier;

use crate::error::QueryError;

/// Points that one answer may have.
const MAX_POINTS: i64 = 1_000_000;

/// Steps of equal length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    step_ns: i64,
    origin_ns: Option<i64>,
}

impl Steps {
    /// `step_ns` is positive.
    pub(crate) fn new(step_ns: i64, origin_ns: Option<i64>) -> Self {
        Self { step_ns, origin_ns }
    }

    /// Nanoseconds of a step.
    pub(crate) fn step_ns(self) -> i64 {
        self.step_ns
    }

    /// The point that stands for the step that a moment is in: its start, or with an origin its
    /// end, which is in it.
    pub(crate) fn point_of(self, time_ns: i64) -> i64 {
        let Some(origin_ns) = self.origin_ns else {
            return step_start(time_ns, self.step_ns);
        };
        let (origin, step) = (i128::from(origin_ns), i128::from(self.step_ns));
        let before = origin - i128::from(time_ns);
        let point = origin - before.div_euclid(step) * step;
        // Only beyond the years that nanoseconds reach.
        i64::try_from(point).unwrap_or(if point < 0 { i64::MIN } else { i64::MAX })
    }

    /// The step that a point stands for.
    pub(crate) fn window_of(self, point: i64) -> Range<i64> {
        if self.origin_ns.is_none() {
            return point..point.saturating_add(self.step_ns);
        }
        let behind = point.saturating_add(1);
        behind.saturating_sub(self.step_ns)..behind
    }

    /// Whether there are so many steps in a window that no answer may have a point for each.
    pub(crate) fn check_count(self, window: &Range<i64>) -> Result<(), QueryError> {
        let length_ns = window.end.saturating_sub(window.start);
        let points = length_ns / self.step_ns;
        if points <= MAX_POINTS {
            return Ok(());
        }
        Err(QueryError::BadRequest(format!(
            "step of {} ns makes {points} points, more than {MAX_POINTS}; ask for a longer step",
            self.step_ns
        )))
    }

    /// Whether each bucket of a tier lies in one step.
    pub(crate) fn hold_buckets_of(self, tier: Tier) -> bool {
        let bucket_ns = tier.bucket_ns();
        // The step of an origin begins behind a point: a bucket begins there one nanosecond later.
        let begins_with_one = |origin_ns: i64| origin_ns.wrapping_add(1).rem_euclid(bucket_ns) == 0;
        bucket_ns == 0
            || (self.step_ns % bucket_ns == 0 && self.origin_ns.is_none_or(begins_with_one))
    }

    /// Whether they are divided from an origin.
    pub(crate) fn have_origin(self) -> bool {
        self.origin_ns.is_some()
    }
}

/// Start of the step that a moment is in.
pub(crate) fn step_start(time_ns: i64, step_ns: i64) -> i64 {
    time_ns.div_euclid(step_ns).saturating_mul(step_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_counts_to_the_start_of_its_step() {
        let steps = Steps::new(10, None);
        let points = [-11, -1, 0, 9, 10].map(|time_ns| steps.point_of(time_ns));
        assert_eq!(points, [-20, -10, 0, 0, 10]);
    }

    #[test]
    fn with_an_origin_it_counts_to_the_first_point_behind_it() {
        let steps = Steps::new(10, Some(3));
        let points = [-8, -7, -6, 2, 3, 4, 13, 14].map(|time_ns| steps.point_of(time_ns));
        assert_eq!(points, [-7, -7, 3, 3, 3, 13, 13, 23]);
        let far = Steps::new(i64::MAX, Some(i64::MAX - 1));
        assert_eq!(far.point_of(i64::MAX), i64::MAX);
        assert_eq!(far.point_of(i64::MIN), i64::MIN);
    }

    #[test]
    fn a_point_stands_for_the_moments_that_count_to_it() {
        for steps in [Steps::new(10, None), Steps::new(10, Some(3))] {
            for time_ns in -25..25 {
                let window = steps.window_of(steps.point_of(time_ns));
                assert!(window.contains(&time_ns), "{time_ns} {window:?} {steps:?}");
                assert_eq!(window.end - window.start, 10);
            }
        }
    }

    #[test]
    fn buckets_are_held_by_steps_that_begin_and_end_with_them() {
        let bucket_ns = Tier::TenMinutes.bucket_ns();
        let held =
            |step_ns, origin_ns| Steps::new(step_ns, origin_ns).hold_buckets_of(Tier::TenMinutes);
        assert!(held(bucket_ns, None) && held(3 * bucket_ns, None));
        assert!(!held(bucket_ns / 2, None));
        assert!(held(bucket_ns, Some(7 * bucket_ns - 1)));
        assert!(
            !held(bucket_ns, Some(7 * bucket_ns)),
            "what starts there is of the step before"
        );
    }
}
