//! What lines come to in a second, step by step.
//!
//! A value is spread evenly over the window of its profile, which may begin in one step and end in
//! another, and each step is averaged over the time that was profiled in it: neither the beat of
//! windows against steps nor what lies before the first of them changes a rate.

use std::collections::BTreeMap;
use std::ops::Range;

use candela_model::ProfiledTime;
use candela_store::TimeRange;
use hashbrown::HashMap;

use crate::budget::Meter;
use crate::error::QueryError;
use crate::run::Run;
use crate::series::PointValue;
use crate::steps::Steps;

/// After so many the budget is asked.
const STEPS_BETWEEN_COUNTS: usize = 10_000;
/// Bytes of a value in the table.
const CELL_BYTES: usize = 48;
const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// Values by line and step.
#[derive(Debug)]
pub(crate) struct Rates {
    steps: Steps,
    range: TimeRange,
    cells: HashMap<(u32, i64), f64>,
    /// Steps that were added to since the budget was asked, and cells that were counted then.
    steps_since: usize,
    counted: usize,
}

impl Rates {
    /// Nothing yet, of what is in a range.
    pub(crate) fn new(steps: Steps, range: TimeRange) -> Self {
        Self {
            steps,
            range,
            cells: HashMap::new(),
            steps_since: 0,
            counted: 0,
        }
    }

    /// Adds what a profile has of a line. What of its window lies behind the range is left out.
    ///
    /// # Errors
    /// When the window has more steps than an answer may have points, or the budget is spent.
    pub(crate) fn add(
        &mut self,
        line: u32,
        run: &Run,
        value: i64,
        meter: &Meter,
    ) -> Result<(), QueryError> {
        let (start_ns, duration_ns) = (run.row.start_ns, run.row.duration_ns);
        if duration_ns <= 0 {
            self.add_part(line, self.steps.point_of(start_ns), value as f64);
            return self.count(meter);
        }
        let per_ns = value as f64 / duration_ns as f64;
        let window = start_ns..start_ns.saturating_add(duration_ns).min(self.range.to_ns);
        self.steps.check_count(&window)?;
        for (point, length_ns) in self.steps.parts_of(window) {
            self.add_part(line, point, per_ns * length_ns as f64);
        }
        self.count(meter)
    }

    /// Asks the budget now and then: one profile may reach a million steps of each line.
    fn count(&mut self, meter: &Meter) -> Result<(), QueryError> {
        if self.steps_since < STEPS_BETWEEN_COUNTS {
            return Ok(());
        }
        self.steps_since = 0;
        meter.check_time()?;
        let new_cells = self.cells.len() - self.counted;
        self.counted = self.cells.len();
        meter.allocate(new_cells * CELL_BYTES)
    }

    fn add_part(&mut self, line: u32, point: i64, value: f64) {
        self.steps_since += 1;
        *self.cells.entry((line, point)).or_default() += value;
    }

    /// The rates by line and step, of profiles that were taken at this time. A step of which it is not
    /// known is averaged over its whole length.
    pub(crate) fn points(&self, profiled: &ProfiledTime) -> BTreeMap<(u32, i64), PointValue> {
        let mut known: HashMap<i64, f64> = HashMap::new();
        let cells = self.cells.iter().map(|(&(line, point), value)| {
            let seconds = *known
                .entry(point)
                .or_insert_with(|| self.seconds_of(point, profiled));
            ((line, point), PointValue::Fraction(value / seconds))
        });
        cells.collect()
    }

    fn seconds_of(&self, point: i64, profiled: &ProfiledTime) -> f64 {
        let step = self.steps.window_of(point);
        let inside = step.start..step.end.min(self.range.to_ns);
        let length_ns = match profiled.length_within(inside) {
            0 => self.steps.step_ns(),
            length_ns => length_ns,
        };
        length_ns as f64 / NANOSECONDS_PER_SECOND
    }
}

impl Steps {
    /// The points of the steps that a window has a part of, with the lengths of the parts.
    fn parts_of(self, window: Range<i64>) -> impl Iterator<Item = (i64, i64)> {
        let mut next_ns = window.start;
        std::iter::from_fn(move || {
            if next_ns >= window.end {
                return None;
            }
            let point = self.point_of(next_ns);
            // In the last step of 64-bit time the window ends with it.
            let end_ns = self.window_of(point).end.max(next_ns.saturating_add(1));
            let part_ns = end_ns.min(window.end) - next_ns;
            next_ns += part_ns;
            Some((point, part_ns))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use candela_store::ManualClock;
    use candela_store::ProfileRow;

    use super::*;
    use crate::query::Query;

    const SECOND_NS: i64 = 1_000_000_000;

    /// The rates of one line in cores, of profiles that start at, last for and have worked so many
    /// seconds.
    fn rates(step_s: i64, to_s: i64, profiles: &[(i64, i64, i64)]) -> Vec<(i64, f64)> {
        let range = TimeRange {
            from_ns: 0,
            to_ns: to_s * SECOND_NS,
        };
        let mut rates = Rates::new(Steps::new(step_s * SECOND_NS, None), range);
        let clock = Arc::new(ManualClock::at(0));
        let meter = Meter::start(&Query::new("t"), clock);
        let mut time = ProfiledTime::default();
        for &(start_s, duration_s, value_s) in profiles {
            let run = Run::whole(ProfileRow {
                series: 0,
                profile_type: 0,
                start_ns: start_s * SECOND_NS,
                duration_ns: duration_s * SECOND_NS,
                period: 0,
                total: 0,
                first_row: 0,
                sample_count: 0,
                merged_profiles: 1,
            });
            time.add(run.row.start_ns, run.row.duration_ns);
            let added = rates.add(0, &run, value_s * SECOND_NS, &meter);
            added.expect("few steps");
        }
        time.put_together();
        let points = rates.points(&time).into_iter();
        let points = points.map(|((_, point), value)| match value {
            PointValue::Fraction(value) => (point / SECOND_NS, value / SECOND_NS as f64),
            PointValue::Whole(_) => panic!("a rate is a fraction"),
        });
        points.collect()
    }

    #[test]
    fn windows_that_are_out_of_step_make_an_even_line() {
        let windows = [3, 13, 23, 33].map(|start_s| (start_s, 10, 20));
        assert_eq!(
            rates(15, 43, &windows),
            [(0, 2.0), (15, 2.0), (30, 2.0)],
            "the first window begins within a step, the last one ends in one"
        );
    }

    #[test]
    fn hosts_that_send_at_other_times_add_up() {
        let profiles = [(0, 10, 10), (5, 10, 10), (10, 10, 10), (15, 10, 10)];
        let cores: Vec<f64> = rates(10, 60, &profiles)
            .iter()
            .map(|point| point.1)
            .collect();
        assert_eq!(cores, [1.5, 2.0, 1.0]);
    }

    #[test]
    fn what_is_not_profiled_is_no_idle_time() {
        assert_eq!(
            rates(60, 300, &[(0, 10, 5), (60, 10, 5), (240, 10, 5)]),
            [(0, 0.5), (60, 0.5), (240, 0.5)]
        );
    }

    #[test]
    fn a_window_behind_the_range_does_not_end_the_line_with_a_fall() {
        assert_eq!(
            rates(10, 15, &[(0, 10, 10), (10, 10, 10)]),
            [(0, 1.0), (10, 1.0)]
        );
    }

    #[test]
    fn a_profile_without_a_length_is_one_of_its_step() {
        assert_eq!(rates(10, 60, &[(12, 0, 5)]), [(10, 0.5)]);
    }
}
