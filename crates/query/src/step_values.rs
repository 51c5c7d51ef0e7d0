//! What the profiles of each step come to, by line.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use crate::query::Aggregation;
use crate::run::Run;
use crate::series::PointValue;
use crate::steps::Steps;

/// Bytes of an entry in the tables.
const CELL_BYTES: usize = 96;

/// Values of profiles by line, step and series.
#[derive(Debug)]
pub(crate) struct StepValues {
    steps: Steps,
    /// By line, step and series.
    cells: HashMap<(u32, i64, u32), Cell>,
    /// By step and series: all profiles, also those in which a line has no sample. A mean is over
    /// them all, and of those that have none the value is zero.
    profiles: HashMap<(i64, u32), Profiles>,
}

/// What profiles of one series have of a line.
#[derive(Clone, Copy, Debug)]
struct Cell {
    profiles: u32,
    sum: i64,
    least: i64,
    greatest: i64,
    last_start_ns: i64,
    /// Of those that start last.
    last: i64,
}

#[derive(Clone, Copy, Debug)]
struct Profiles {
    count: u32,
    last_start_ns: i64,
}

/// A value in the making.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    exact: i64,
    mean: f64,
}

impl StepValues {
    pub(crate) fn new(steps: Steps) -> Self {
        Self {
            steps,
            cells: HashMap::new(),
            profiles: HashMap::new(),
        }
    }

    /// Counts a profile of a series, whatever is in it.
    pub(crate) fn add_profile(&mut self, series: u32, start_ns: i64, merged_profiles: u32) {
        let step = self.steps.point_of(start_ns);
        let profiles = self.profiles.entry((step, series)).or_insert(Profiles {
            count: 0,
            last_start_ns: start_ns,
        });
        profiles.count += merged_profiles;
        profiles.last_start_ns = start_ns.max(profiles.last_start_ns);
    }

    /// Adds what a profile has of a line.
    pub(crate) fn add(&mut self, line: u32, run: &Run, value: i64) {
        let start_ns = run.row.start_ns;
        let step = self.steps.point_of(start_ns);
        let cell = self.cells.entry((line, step, run.series)).or_insert(Cell {
            profiles: 0,
            sum: 0,
            least: value,
            greatest: value,
            last_start_ns: start_ns,
            last: 0,
        });
        cell.profiles += run.row.merged_profiles;
        cell.sum = cell.sum.saturating_add(value);
        cell.least = value.min(cell.least);
        cell.greatest = value.max(cell.greatest);
        if start_ns > cell.last_start_ns {
            cell.last_start_ns = start_ns;
            cell.last = 0;
        }
        if start_ns == cell.last_start_ns {
            cell.last = cell.last.saturating_add(value);
        }
    }

    /// Estimated bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        (self.cells.len() + self.profiles.len()) * CELL_BYTES
    }

    /// The values by line and step: those of each series, added up.
    pub(crate) fn points(&self, aggregation: Aggregation) -> BTreeMap<(u32, i64), PointValue> {
        let mut totals: BTreeMap<(u32, i64), Total> = BTreeMap::new();
        for (&(line, step, series), cell) in &self.cells {
            let total = totals.entry((line, step)).or_default();
            let profiles = self.profiles[&(step, series)];
            if aggregation == Aggregation::Average {
                total.mean += cell.sum as f64 / f64::from(profiles.count);
            } else {
                let value = cell.value(aggregation, profiles);
                total.exact = total.exact.saturating_add(value);
            }
        }
        let points = totals.into_iter().map(|(key, total)| {
            let value = match aggregation {
                Aggregation::Average => total.mean.round() as i64,
                _ => total.exact,
            };
            let value = PointValue::Whole(value);
            (key, value)
        });
        points.collect()
    }
}

impl Cell {
    fn value(&self, aggregation: Aggregation, of_series: Profiles) -> i64 {
        let is_in_all = self.profiles == of_series.count;
        let with_zero = |value: i64, other: fn(i64, i64) -> i64| {
            if is_in_all { value } else { other(value, 0) }
        };
        match aggregation {
            Aggregation::Minimum => with_zero(self.least, i64::min),
            Aggregation::Maximum => with_zero(self.greatest, i64::max),
            Aggregation::Last if self.last_start_ns < of_series.last_start_ns => 0,
            Aggregation::Last => self.last,
            Aggregation::Sum | Aggregation::Average | Aggregation::Rate => self.sum,
        }
    }
}

#[cfg(test)]
mod tests {
    use candela_store::ProfileRow;

    use super::*;

    fn run(series: u32, start_ns: i64) -> Run {
        Run::whole(ProfileRow {
            series,
            profile_type: 0,
            start_ns,
            duration_ns: 0,
            period: 0,
            total: 0,
            first_row: 0,
            sample_count: 0,
            merged_profiles: 1,
        })
    }

    #[test]
    fn each_series_combines_by_itself() {
        let mut values = StepValues::new(Steps::new(10, None));
        for (series, start_ns, value) in [(0, 1, 5), (0, 2, 7), (1, 3, 100), (0, 12, 1)] {
            values.add_profile(series, start_ns, 1);
            values.add(0, &run(series, start_ns), value);
        }
        // The line has nothing in the latest profile of series 1.
        values.add_profile(1, 4, 1);
        let first = |aggregation| values.points(aggregation)[&(0, 0)];
        assert_eq!(first(Aggregation::Sum), PointValue::Whole(112));
        assert_eq!(first(Aggregation::Average), PointValue::Whole(56));
        assert_eq!(first(Aggregation::Minimum), PointValue::Whole(5));
        assert_eq!(first(Aggregation::Maximum), PointValue::Whole(107));
        assert_eq!(first(Aggregation::Last), PointValue::Whole(7));
        assert_eq!(
            values.points(Aggregation::Sum)[&(0, 10)],
            PointValue::Whole(1)
        );
    }
}
