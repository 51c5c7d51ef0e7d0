//! How the profiles of each moment are distributed: many small ones or one large one.

use std::collections::BTreeMap;

use candela_store::Tier;

use crate::budget::Meter;
use crate::engine::Engine;
use crate::error::QueryError;
use crate::left_sums::COUNT_AS_ONE;
use crate::query::Answer;
use crate::query::Query;
use crate::run::Run;
use crate::series::SeriesOptions;
use crate::series::steps_of;
use crate::taken::Taken;

const DEFAULT_BUCKETS: usize = 20;
/// More rows than a screen has pixels help nobody.
const MAX_BUCKETS: usize = 1000;
/// Counts of one answer: each is a number in it, most of them 0.
pub(crate) const MAX_COUNTS: usize = 1_000_000;
/// Bytes of a value with its step.
const VALUE_BYTES: usize = 16;
/// Bytes of a count here and as a value of JSON.
const COUNT_BYTES: usize = 40;
/// The same of a column without its counts.
const COLUMN_BYTES: usize = 256;

/// How to divide time and values.
#[derive(Clone, Debug, Default)]
pub struct HeatmapOptions {
    /// Nanoseconds of a column; a good one for the range when `None`.
    pub step_ns: Option<i64>,
    /// Rows; 20 when `None`.
    pub buckets: Option<usize>,
}

/// How many profiles have which value when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heatmap {
    /// Nanoseconds of a column.
    pub step_ns: i64,
    /// Whether values are per second of their profile, as for everything that adds up.
    pub is_rate: bool,
    /// Lower bounds of the rows, ascending, then the upper bound of the last one, which includes it.
    /// Empty without profiles.
    pub bounds: Vec<f64>,
    /// Columns that have a profile, by time.
    pub columns: Vec<HeatmapColumn>,
}

/// The profiles of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeatmapColumn {
    /// Start of the step, nanoseconds since the Unix epoch and a multiple of the step.
    pub start_ns: i64,
    /// Profiles by row.
    pub counts: Vec<u32>,
}

/// Rows of equal height.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    lowest: f64,
    height: f64,
    count: usize,
}

impl Engine {
    /// The distribution of the values of single profiles over time. A profile is of one series (a
    /// process, a thread group, a container …) and one window.
    ///
    /// # Errors
    /// As [`Engine::series`], and when there are no rows or too many.
    pub fn heatmap(
        &self,
        query: &Query,
        options: &HeatmapOptions,
    ) -> Result<Answer<Heatmap>, QueryError> {
        let buckets = checked_buckets(options.buckets)?;
        let mut loaded = self.load(query, query.range, Tier::Raw)?;
        let plan = self.plan_of_values(query, &mut loaded)?;
        loaded.tell_of_sums(&plan, Tier::TenMinutes, COUNT_AS_ONE);
        let steps = SeriesOptions {
            step_ns: options.step_ns,
            ..SeriesOptions::default()
        };
        let steps = steps_of(&steps, &plan)?;
        let is_rate = !plan.is_gauge();
        let mut values: Vec<(i64, f64)> = Vec::new();
        let mut taken = Taken::default();
        self.for_each_source(&plan, &mut loaded, |source, part, meter| {
            let (totals, of_source) = self.totals_of_runs(source, &part.runs, meter)?;
            meter.allocate(totals.len() * VALUE_BYTES)?;
            taken.add_all(of_source);
            for (run, total) in part.runs.iter().zip(totals) {
                let step = steps.point_of(run.row.start_ns);
                values.push((step, value_of(run, total, is_rate)));
            }
            Ok(())
        })?;
        // A profile without a sample that matches has a value all the same, in whichever block it is.
        loaded.meter.allocate(plan.empty.len() * VALUE_BYTES)?;
        let empty = plan.empty.iter();
        values.extend(empty.map(|empty| (steps.point_of(empty.start_ns), 0.0)));
        values.sort_unstable_by_key(|&(step, _)| step);
        let columns = values.chunk_by(|left, right| left.0 == right.0).count();
        allocate_columns(columns, buckets, &loaded.meter)?;
        let (bounds, columns) = distribute(&values, buckets);
        let heatmap = Heatmap {
            step_ns: steps.step_ns(),
            is_rate,
            bounds,
            columns,
        };
        self.answer(query, &loaded, &plan, taken, heatmap)
    }
}

/// What happened in a profile is as much as its window is long, so windows of different lengths
/// compare per second.
fn value_of(run: &Run, total: i64, is_rate: bool) -> f64 {
    let duration_ns = run.row.duration_ns;
    if !is_rate || duration_ns <= 0 {
        return total as f64;
    }
    total as f64 * 1e9 / duration_ns as f64
}

/// Rows of equal height from 0, or from the lowest value where some are negative, to the highest.
fn distribute(values: &[(i64, f64)], buckets: usize) -> (Vec<f64>, Vec<HeatmapColumn>) {
    if values.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let values_of = || values.iter().map(|&(_, value)| value);
    let rows = Rows::between(
        values_of().fold(0.0, f64::min),
        values_of().fold(0.0, f64::max),
        buckets,
    );
    let mut columns: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
    for &(step, value) in values {
        let counts = columns.entry(step).or_insert_with(|| vec![0; buckets]);
        counts[rows.row_of(value)] += 1;
    }
    let columns = columns
        .into_iter()
        .map(|(start_ns, counts)| HeatmapColumn { start_ns, counts });
    (rows.bounds(), columns.collect())
}

/// How many rows were asked for.
pub(crate) fn checked_buckets(asked: Option<usize>) -> Result<usize, QueryError> {
    let buckets = asked.unwrap_or(DEFAULT_BUCKETS);
    if (1..=MAX_BUCKETS).contains(&buckets) {
        return Ok(buckets);
    }
    Err(QueryError::BadRequest(format!(
        "{buckets} buckets; ask for 1 to {MAX_BUCKETS}"
    )))
}

/// Counts the memory of so many columns, here and on the way out.
pub(crate) fn allocate_columns(
    columns: usize,
    buckets: usize,
    meter: &Meter,
) -> Result<(), QueryError> {
    let counts = columns.saturating_mul(buckets);
    if counts > MAX_COUNTS {
        return Err(QueryError::BadRequest(format!(
            "{columns} columns of {buckets} buckets are {counts} counts, more than {MAX_COUNTS}; ask for a longer step or for fewer buckets"
        )));
    }
    meter.allocate(counts * COUNT_BYTES + columns * COLUMN_BYTES)
}

impl Rows {
    pub(crate) fn between(lowest: f64, highest: f64, count: usize) -> Self {
        let height = if highest > lowest {
            (highest - lowest) / count as f64
        } else {
            1.0
        };
        Self {
            lowest,
            height,
            count,
        }
    }

    /// The row of a value; the last one holds its upper bound.
    pub(crate) fn row_of(&self, value: f64) -> usize {
        let row = ((value - self.lowest) / self.height) as usize;
        let row = row.min(self.count - 1);
        // A division may round a value that is a bound to its other side, and clients see the bounds.
        if row + 1 < self.count && value >= self.bound(row + 1) {
            return row + 1;
        }
        if row > 0 && value < self.bound(row) {
            return row - 1;
        }
        row
    }

    fn bound(&self, row: usize) -> f64 {
        self.lowest + self.height * row as f64
    }

    /// Lower bounds, then the upper bound of the last row.
    pub(crate) fn bounds(&self) -> Vec<f64> {
        (0..=self.count).map(|row| self.bound(row)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_its_row() {
        let values = [(0, 0.0), (0, 10.0), (0, 4.9), (20, 5.0), (20, 10.0)];
        let (bounds, columns) = distribute(&values, 2);
        assert_eq!(bounds, [0.0, 5.0, 10.0]);
        let counts: Vec<(i64, &[u32])> = columns
            .iter()
            .map(|column| (column.start_ns, &column.counts[..]))
            .collect();
        assert_eq!(counts, [(0, &[2, 1][..]), (20, &[0, 2][..])]);
    }

    #[test]
    fn nothing_and_nothing_but_zeros() {
        assert_eq!(distribute(&[], 3), (Vec::new(), Vec::new()));
        let (bounds, columns) = distribute(&[(5, 0.0)], 2);
        assert_eq!(bounds, [0.0, 1.0, 2.0]);
        assert_eq!(columns[0].counts, [1, 0]);
    }

    #[test]
    fn values_below_zero_have_rows_too() {
        let (bounds, columns) = distribute(&[(0, -4.0), (0, 4.0)], 2);
        assert_eq!(bounds, [-4.0, 0.0, 4.0]);
        assert_eq!(columns[0].counts, [1, 1]);
    }
}
