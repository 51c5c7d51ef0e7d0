//! When samples were taken: one column after another, and the moment within a column from bottom to top.
//!
//! With columns of a second this is what Netflix's FlameScope draws: what happens in each second at the
//! same moment is a line, what happens once is a spot, and what blocks everything is a gap.

use std::collections::BTreeMap;

use candela_store::Tier;

use crate::engine::Engine;
use crate::error::QueryError;
use crate::heatmap::HeatmapColumn;
use crate::heatmap::MAX_COUNTS;
use crate::heatmap::allocate_columns;
use crate::heatmap::checked_buckets;
use crate::query::Answer;
use crate::query::Query;
use crate::sample_times::for_each_sample;
use crate::sample_times::widened;
use crate::sums::divided;
use crate::taken::Taken;

/// Rows when nothing is said: of a second 20 ms each.
const DEFAULT_ROWS: usize = 50;
/// Columns of an answer are at most about as many.
const MOST_COLUMNS: i64 = 300;
/// More columns than this are refused.
const MAX_COLUMNS: i64 = 100_000;
const SECOND_NS: i64 = 1_000_000_000;
/// Lengths of columns that people can count in.
const NICE_STEPS_S: [i64; 10] = [1, 5, 15, 60, 300, 900, 3600, 14_400, 43_200, 86_400];

/// How to divide time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SampleHeatmapOptions {
    /// Nanoseconds of a column; a good one for the range when `None`.
    pub step_ns: Option<i64>,
    /// Rows; 50 when `None`.
    pub buckets: Option<usize>,
}

/// How many samples were taken when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleHeatmap {
    /// Nanoseconds of a column.
    pub step_ns: i64,
    /// Rows of a column, each an equal part of it.
    pub buckets: usize,
    /// Columns that have a sample, by time.
    pub columns: Vec<HeatmapColumn>,
    /// Stored samples in it.
    pub timed: u64,
    /// Stored samples of the range of which only the profile's window is known.
    pub untimed: u64,
}

impl Engine {
    /// The moments at which samples were taken, where that is known.
    ///
    /// # Errors
    /// As [`Engine::heatmap`].
    pub fn sample_heatmap(
        &self,
        query: &Query,
        options: SampleHeatmapOptions,
    ) -> Result<Answer<SampleHeatmap>, QueryError> {
        let buckets = checked_buckets(Some(options.buckets.unwrap_or(DEFAULT_ROWS)))?;
        let step_ns = checked_step(query, options.step_ns)?;
        let wide = widened(query, &self.shelf);
        let mut loaded = self.load(&wide, wide.range, Tier::Raw)?;
        let plan = self.plan_of_values(&wide, &mut loaded)?;
        let mut columns: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
        let (mut timed, mut untimed) = (0, 0);
        let mut taken = Taken::default();
        self.for_each_source(&plan, &mut loaded, |source, part, meter| {
            let is_in = |start_ns: i64| query.range.contains(start_ns);
            if !source.has_times()? {
                let rows = part.runs.iter().map(|run| run.row);
                let rows = rows.filter(|row| is_in(row.start_ns));
                untimed += rows.map(|row| u64::from(row.sample_count)).sum::<u64>();
                return Ok(());
            }
            let before = columns.len();
            for_each_sample(source, &part.runs, meter, |sample| {
                let run = &part.runs[sample.run];
                if sample.time_ns == 0 {
                    untimed += u64::from(is_in(run.row.start_ns));
                    return;
                }
                if !is_in(sample.time_ns) || columns.len() * buckets > MAX_COUNTS {
                    return;
                }
                timed += 1;
                taken.add(run, 1, sample.value);
                let start_ns = sample.time_ns.div_euclid(step_ns) * step_ns;
                let offset = i128::from(sample.time_ns - start_ns) * buckets as i128;
                let row = (offset / i128::from(step_ns)) as usize;
                let counts = columns.entry(start_ns).or_insert_with(|| vec![0; buckets]);
                let events = run.event_value.map_or(1, |value| {
                    divided(sample.value, value.get()).unsigned_abs().max(1)
                });
                counts[row] = counts[row].saturating_add(u32::try_from(events).unwrap_or(u32::MAX));
            })?;
            let new = match columns.len() * buckets > MAX_COUNTS {
                true => columns.len(),
                false => columns.len() - before,
            };
            Ok(allocate_columns(new, buckets, meter)?)
        })?;
        let columns = columns.into_iter();
        let columns = columns.map(|(start_ns, counts)| HeatmapColumn { start_ns, counts });
        let heatmap = SampleHeatmap {
            step_ns,
            buckets,
            columns: columns.collect(),
            timed,
            untimed,
        };
        let mut answer = self.answer(query, &loaded, &plan, taken, heatmap)?;
        if answer.value.timed == 0 && answer.value.untimed > 0 {
            answer.hint = Some(NO_TIMES.to_owned());
        }
        Ok(answer)
    }
}

/// What to say where there are samples, and none has a time.
pub(crate) const NO_TIMES: &str = "it is not known when these samples were taken: candela record keeps their times, and agents do with agent.timestamps";

/// The asked step, or one with which the range has a few hundred columns.
fn checked_step(query: &Query, asked: Option<i64>) -> Result<i64, QueryError> {
    let length_ns = query.range.to_ns.saturating_sub(query.range.from_ns);
    let Some(step_ns) = asked else {
        let wanted_s = length_ns / SECOND_NS / MOST_COLUMNS;
        let mut nice = NICE_STEPS_S.into_iter();
        let step_s = nice.find(|&step_s| step_s >= wanted_s).unwrap_or(86_400);
        return Ok(step_s * SECOND_NS);
    };
    if step_ns <= 0 {
        return Err(QueryError::BadRequest(format!(
            "step of {step_ns} ns is not positive; leave it out for a good one"
        )));
    }
    if length_ns / step_ns > MAX_COLUMNS {
        return Err(QueryError::BadRequest(format!(
            "step of {step_ns} ns makes {} columns, more than {MAX_COLUMNS}; ask for a longer step",
            length_ns / step_ns
        )));
    }
    Ok(step_ns)
}
