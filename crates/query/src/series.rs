//! Values over time.

use std::collections::BTreeMap;

use candela_model::Labels;
use hashbrown::HashMap;

use crate::budget::Meter;
use crate::engine::Engine;
use crate::error::Failure;
use crate::error::QueryError;
use crate::matching::SampleLabels;
use crate::plan::Plan;
use crate::plan::Run;
use crate::query::Answer;
use crate::query::Query;
use crate::run_sums::sums_of_runs;
use crate::sources::Source;
use crate::taken::Taken;

/// Steps that read well, seconds.
const NICE_STEPS_S: [i64; 14] = [
    1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 21_600, 86_400,
];
/// Points of a line when the caller does not say: a screen has about that many pixels for it.
const DEFAULT_POINTS: i64 = 240;
/// Bytes of a sum or a count in a table by step.
const CELL_BYTES: usize = 64;
/// Points that one answer may have.
const MAX_POINTS: i64 = 1_000_000;

/// How the profiles of a step combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// The sum of all profiles.
    Sum,
    /// The mean over each series' profiles, then the sum over series.
    Average,
}

/// How to draw lines.
#[derive(Clone, Debug, Default)]
pub struct SeriesOptions {
    /// Nanoseconds from one point to the next; a good one for the range when `None`.
    pub step_ns: Option<i64>,
    /// Labels of series or samples that tell lines apart; one line when empty.
    pub group_by: Vec<String>,
    /// Sums of what happened and averages of states when `None`.
    pub aggregation: Option<Aggregation>,
}

/// Lines over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesTable {
    /// Nanoseconds from one point to the next.
    pub step_ns: i64,
    /// The lines, sorted by their labels.
    pub series: Vec<LabeledPoints>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabeledPoints {
    /// The labels that it is grouped by.
    pub labels: Labels,
    /// Start of the step, nanoseconds since the Unix epoch and a multiple of the step, and value.
    /// Steps without a profile are left out.
    pub points: Vec<(i64, i64)>,
}

/// What was added up so far.
#[derive(Debug, Default)]
struct Cells {
    /// By line, step and series.
    sums: HashMap<(u32, i64, u32), i64>,
    /// Profiles by step and series: a mean is over all of them, also those in which a line's
    /// threads did not run.
    profiles: HashMap<(i64, u32), u32>,
}

/// The lines that there are so far.
#[derive(Debug, Default)]
struct Groups {
    by_labels: HashMap<Labels, u32>,
}

impl Engine {
    /// Values over time of everything that matches.
    ///
    /// # Errors
    /// As [`Engine::flame_tree`], and when the step is not positive or makes too many points.
    pub fn series(
        &self,
        query: &Query,
        options: &SeriesOptions,
    ) -> Result<Answer<SeriesTable>, QueryError> {
        let mut loaded = self.load(query, query.range)?;
        let plan = self.plan(query, &mut loaded)?;
        let step_ns = step_of(options, &plan)?;
        let mut groups = Groups::default();
        let mut cells = Cells::default();
        let mut taken = Taken::default();
        self.for_each_source(&plan, &mut loaded, |source, part, meter| {
            let before = cells.sums.len() + cells.profiles.len();
            let context = Context {
                plan: &plan,
                group_by: &options.group_by,
                step_ns,
            };
            let of_source =
                context.add_source(source, &part.runs, meter, &mut groups, &mut cells)?;
            taken.add_all(of_source);
            let added = cells.sums.len() + cells.profiles.len() - before;
            meter.allocate(added * CELL_BYTES)?;
            Ok(())
        })?;
        for &(series, start_ns) in &plan.empty {
            let count = cells
                .profiles
                .entry((step_start(start_ns, step_ns), series));
            *count.or_default() += 1;
        }
        let default = if plan.is_gauge() {
            Aggregation::Average
        } else {
            Aggregation::Sum
        };
        let aggregation = options.aggregation.unwrap_or(default);
        let table = SeriesTable {
            step_ns,
            series: lines(groups, &cells, aggregation),
        };
        self.answer(query, &loaded, &plan, taken, table)
    }
}

/// What is the same for all sources.
struct Context<'a> {
    plan: &'a Plan,
    group_by: &'a [String],
    step_ns: i64,
}

impl Context<'_> {
    fn add_source(
        &self,
        source: &Source,
        runs: &[Run],
        meter: &Meter,
        groups: &mut Groups,
        cells: &mut Cells,
    ) -> Result<Taken, Failure> {
        let mut taken = Taken::default();
        for run in runs {
            let count = cells
                .profiles
                .entry((step_start(run.row.start_ns, self.step_ns), run.series));
            *count.or_default() += 1;
        }
        let (by_sample, whole): (Vec<&Run>, Vec<&Run>) =
            runs.iter().partition(|run| self.needs_samples(source, run));
        for run in whole {
            let labels = &self.plan.series[run.series as usize];
            let group = groups.number(self.group_by, |name| labels.get(name).map(str::to_owned));
            self.add(cells, group, run, run.row.total);
            taken.add_whole(run);
        }
        if by_sample.is_empty() {
            return Ok(taken);
        }
        let by_sample: Vec<Run> = by_sample.into_iter().cloned().collect();
        let summed = sums_of_runs(source, &by_sample, meter)?;
        taken.add_all(summed.taken);
        source.with_sample_labels(|labels| {
            for (run, sums) in by_sample.iter().zip(&summed.by_run) {
                self.add_sets(cells, groups, run, sums, labels);
            }
        })?;
        Ok(taken)
    }

    /// Whether the total of the profile is not enough.
    fn needs_samples(&self, source: &Source, run: &Run) -> bool {
        let labels = &self.plan.series[run.series as usize];
        let is_of_samples =
            |name: &String| labels.get(name).is_none() && source.sample_labels.contains(name);
        let groups_by_sample = self.group_by.iter().any(is_of_samples);
        // A derived count is rounded sample by sample.
        run.sets.is_some() || groups_by_sample || run.divisor != 1
    }

    fn add_sets(
        &self,
        cells: &mut Cells,
        groups: &mut Groups,
        run: &Run,
        sums: &HashMap<u32, i64>,
        sample_labels: &SampleLabels<'_>,
    ) {
        let labels = &self.plan.series[run.series as usize];
        let mut by_group: BTreeMap<u32, i64> = BTreeMap::new();
        for (&set, &sum) in sums {
            let group = groups.number(self.group_by, |name| {
                let of_series = labels.get(name).map(str::to_owned);
                of_series.or_else(|| sample_labels.value(set, name))
            });
            let total = by_group.entry(group).or_default();
            *total = total.saturating_add(sum);
        }
        for (group, sum) in by_group {
            self.add(cells, group, run, sum);
        }
    }

    fn add(&self, cells: &mut Cells, group: u32, run: &Run, value: i64) {
        let sum = cells.sums.entry((
            group,
            step_start(run.row.start_ns, self.step_ns),
            run.series,
        ));
        let sum = sum.or_default();
        *sum = sum.saturating_add(value);
    }
}

/// Start of the step that a moment is in.
pub(crate) fn step_start(time_ns: i64, step_ns: i64) -> i64 {
    time_ns.div_euclid(step_ns) * step_ns
}

impl Groups {
    fn number(
        &mut self,
        group_by: &[String],
        mut value: impl FnMut(&str) -> Option<String>,
    ) -> u32 {
        let pairs = group_by
            .iter()
            .filter_map(|name| Some((name.as_str(), value(name)?)));
        let labels = Labels::from_pairs(pairs);
        let next = self.by_labels.len() as u32;
        *self.by_labels.entry(labels).or_insert(next)
    }
}

fn lines(groups: Groups, cells: &Cells, aggregation: Aggregation) -> Vec<LabeledPoints> {
    let mut points: BTreeMap<(u32, i64), f64> = BTreeMap::new();
    let mut exact: BTreeMap<(u32, i64), i64> = BTreeMap::new();
    for (&(group, step, series), &value) in &cells.sums {
        match aggregation {
            Aggregation::Sum => {
                let sum = exact.entry((group, step)).or_default();
                *sum = sum.saturating_add(value);
            }
            Aggregation::Average => {
                let mean = value as f64 / f64::from(cells.profiles[&(step, series)]);
                *points.entry((group, step)).or_default() += mean;
            }
        }
    }
    let rounded = points
        .into_iter()
        .map(|(key, mean)| (key, mean.round() as i64));
    exact.extend(rounded);
    let mut lines: Vec<(u32, LabeledPoints)> = groups
        .by_labels
        .into_iter()
        .map(|(labels, number)| {
            let points = exact.range((number, i64::MIN)..=(number, i64::MAX));
            let points = points.map(|(&(_, step), &value)| (step, value)).collect();
            (number, LabeledPoints { labels, points })
        })
        .collect();
    lines.sort_by(|(_, left), (_, right)| left.labels.cmp(&right.labels));
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The asked step, or a good one for the profiles of the plan.
pub(crate) fn step_of(options: &SeriesOptions, plan: &Plan) -> Result<i64, QueryError> {
    let starts = || {
        let runs = plan.sources.iter().flat_map(|part| &part.runs);
        runs.map(|run| run.row.start_ns)
    };
    let span_ns = match (starts().min(), starts().max()) {
        (Some(first), Some(last)) => last.saturating_sub(first),
        _ => 0,
    };
    let Some(step_ns) = options.step_ns else {
        let wanted_s = span_ns / 1_000_000_000 / DEFAULT_POINTS;
        let nice = NICE_STEPS_S.iter().find(|&&step| step >= wanted_s.max(15));
        return Ok(nice.unwrap_or(&86_400) * 1_000_000_000);
    };
    if step_ns <= 0 {
        return Err(QueryError::BadRequest(format!(
            "step of {step_ns} ns is not positive; leave it out for a good one"
        )));
    }
    if span_ns / step_ns > MAX_POINTS {
        return Err(QueryError::BadRequest(format!(
            "step of {step_ns} ns makes {} points, more than {MAX_POINTS}; ask for a longer step",
            span_ns / step_ns
        )));
    }
    Ok(step_ns)
}
