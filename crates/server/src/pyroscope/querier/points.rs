//! Where the points of lines are: one at the start of the range, the others so many steps behind it.

use candela_query::SeriesOptions;
use candela_store::TimeRange;

use crate::api_error::ApiError;

const MILLISECONDS_PER_SECOND: f64 = 1e3;
const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;
/// The shortest step, seconds.
const SHORTEST_STEP: f64 = 0.001;
const LONGEST_STEP: f64 = 1e9;

/// The points of a range. A profile counts to the first one that is not before it, and what is
/// behind the last one to none: a point beyond the range would be of a step that is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Points {
    first_ms: i64,
    last_ms: i64,
    step_ms: i64,
}

impl Points {
    /// Of a range that does not end before it starts, milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// 400 for what is no step.
    pub(crate) fn of(start_ms: i64, end_ms: i64, step_s: f64) -> Result<Self, ApiError> {
        if !(SHORTEST_STEP..LONGEST_STEP).contains(&step_s) {
            let message = format!("step: {step_s} s; the shortest is {SHORTEST_STEP} s");
            return Err(ApiError::bad_request("bad_step", message));
        }
        // Clients count in milliseconds, and so must the points that they compare.
        let step_ms = (step_s * MILLISECONDS_PER_SECOND).round() as i64;
        let length_ms = end_ms.saturating_sub(start_ms);
        Ok(Self {
            first_ms: start_ms,
            last_ms: start_ms.saturating_add(length_ms / step_ms * step_ms),
            step_ms,
        })
    }

    /// The profiles that count to a point: those of the first one are before the range.
    pub(crate) fn range(self) -> TimeRange {
        TimeRange {
            from_ns: end_of(self.first_ms.saturating_sub(self.step_ms)).saturating_add(1),
            to_ns: end_of(self.last_ms).saturating_add(1),
        }
    }

    /// Lines of them.
    pub(crate) fn lines(self, group_by: &[String]) -> SeriesOptions {
        SeriesOptions {
            step_ns: Some(self.step_ms.saturating_mul(NANOSECONDS_PER_MILLISECOND)),
            group_by: group_by.to_vec(),
            origin_ns: Some(end_of(self.first_ms)),
        }
    }
}

/// A time as clients have it.
pub(crate) fn milliseconds(time_ns: i64) -> i64 {
    time_ns.div_euclid(NANOSECONDS_PER_MILLISECOND)
}

/// The last nanosecond of a millisecond: to clients all of them are one moment.
fn end_of(time_ms: i64) -> i64 {
    let start_ns = time_ms.saturating_mul(NANOSECONDS_PER_MILLISECOND);
    start_ns.saturating_add(NANOSECONDS_PER_MILLISECOND - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_point_is_the_start_and_the_last_is_in_the_range() {
        let points = Points::of(1000, 1999, 0.25).expect("a step");
        assert_eq!((points.first_ms, points.last_ms), (1000, 1750));
        let range = points.range();
        assert_eq!((range.from_ns, range.to_ns), (751_000_000, 1_751_000_000));
        let lines = points.lines(&[]);
        assert_eq!(lines.step_ns, Some(250_000_000));
        assert_eq!(lines.origin_ns, Some(1_000_999_999));
        assert_eq!(milliseconds(1_000_999_999), 1000);
        let points = Points::of(1000, 2000, 0.25).expect("a step");
        assert_eq!(points.last_ms, 2000, "the end is in the range");
        let points = Points::of(1000, 2000, 60.0).expect("a step");
        assert_eq!(points.last_ms, 1000);
    }

    #[test]
    fn steps_are_whole_milliseconds() {
        for (step_s, step_ms) in [(0.001, 1), (0.057, 57), (1.001, 1001), (15.0, 15_000)] {
            let points = Points::of(0, 1, step_s).expect("a step");
            assert_eq!(points.step_ms, step_ms);
        }
        for step_s in [0.0, -1.0, 0.0009, f64::NAN, f64::INFINITY] {
            let error = Points::of(0, 1, step_s).expect_err("no step");
            assert_eq!(error.code, "bad_step");
        }
    }

    #[test]
    fn ranges_of_any_length_have_points() {
        for (start_ms, end_ms) in [(i64::MIN, i64::MAX), (i64::MAX, i64::MAX), (0, i64::MAX)] {
            let points = Points::of(start_ms, end_ms, 0.001).expect("a step");
            let range = points.range();
            assert!(range.from_ns <= range.to_ns);
        }
    }
}
