//! Values over time.

use std::collections::BTreeMap;

use candela_model::Labels;
use candela_store::KEPT_LABELS;
use candela_store::Tier;
use hashbrown::HashMap;

use crate::budget::Meter;
use crate::engine::Engine;
use crate::engine::Loaded;
use crate::error::Failure;
use crate::error::QueryError;
use crate::matching::SampleLabels;
use crate::plan::Plan;
use crate::query::Answer;
use crate::query::Query;
use crate::run::Run;
use crate::sources::Source;
use crate::step_values::StepValues;
use crate::taken::Taken;
use crate::tiers::coarsest_tier;
use crate::tiers::tier_of_step;

/// Steps that read well, seconds.
const NICE_STEPS_S: [i64; 14] = [
    1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 21_600, 86_400,
];
/// Points of a line when the caller does not say: a screen has about that many pixels for it.
const DEFAULT_POINTS: i64 = 240;
/// Points that one answer may have.
const MAX_POINTS: i64 = 1_000_000;

/// How to draw lines.
#[derive(Clone, Debug, Default)]
pub struct SeriesOptions {
    /// Nanoseconds from one point to the next; a good one for the range when `None`.
    pub step_ns: Option<i64>,
    /// Labels of series or samples that tell lines apart; one line when empty.
    pub group_by: Vec<String>,
}

/// Lines over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesTable {
    /// Nanoseconds from one point to the next.
    pub step_ns: i64,
    /// The lines, sorted by their labels.
    pub series: Vec<LabeledPoints>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LabeledPoints {
    /// The labels that it is grouped by.
    pub labels: Labels,
    /// Start of the step, nanoseconds since the Unix epoch and a multiple of the step, and value.
    /// Steps without a profile are left out.
    pub points: Vec<(i64, PointValue)>,
}

/// A value of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PointValue {
    /// In the unit of the type; means are rounded.
    Whole(i64),
    /// A rate, by second.
    Fraction(f64),
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
        let names: Vec<&str> = options.group_by.iter().map(String::as_str).collect();
        let coarsest = match options.step_ns {
            Some(step_ns) => tier_of_step(coarsest_tier(query, &names), step_ns),
            None => Tier::Raw,
        };
        let mut loaded = self.load_by(query, query.range, coarsest, &names)?;
        let plan = self.plan_of_values(query, &mut loaded)?;
        let step_ns = step_of(options, &plan)?;
        tell_of_lines(&names, step_ns, &plan, &mut loaded);
        let mut groups = Groups::default();
        let mut cells = StepValues::new(step_ns);
        let mut taken = Taken::default();
        self.for_each_source(&plan, &mut loaded, |source, part, meter| {
            let before = cells.bytes();
            let context = Context {
                engine: self,
                plan: &plan,
                group_by: &options.group_by,
            };
            let of_source =
                context.add_source(source, &part.runs, meter, &mut groups, &mut cells)?;
            taken.add_all(of_source);
            meter.allocate(cells.bytes() - before)?;
            Ok(())
        })?;
        for empty in &plan.empty {
            cells.add_profile(empty.series, empty.start_ns, empty.merged_profiles);
        }
        let table = SeriesTable {
            step_ns,
            series: lines(groups, &cells.points(plan.aggregation(query))),
        };
        self.answer(query, &loaded, &plan, taken, table)
    }
}

/// What is the same for all sources.
struct Context<'a> {
    engine: &'a Engine,
    plan: &'a Plan,
    group_by: &'a [String],
}

impl Context<'_> {
    fn add_source(
        &self,
        source: &Source,
        runs: &[Run],
        meter: &Meter,
        groups: &mut Groups,
        cells: &mut StepValues,
    ) -> Result<Taken, Failure> {
        let mut taken = Taken::default();
        for run in runs {
            cells.add_profile(run.series, run.row.start_ns, run.row.merged_profiles);
        }
        let (by_sample, whole): (Vec<&Run>, Vec<&Run>) =
            runs.iter().partition(|run| self.needs_samples(source, run));
        for run in whole {
            let labels = &self.plan.series[run.series as usize];
            let group = groups.number(self.group_by, |name| labels.get(name).map(str::to_owned));
            cells.add(group, run, run.row.total);
            taken.add_whole(run);
        }
        if by_sample.is_empty() {
            return Ok(taken);
        }
        let by_sample: Vec<Run> = by_sample.into_iter().cloned().collect();
        let summed = self.engine.sums_by_run(source, &by_sample, meter)?;
        taken.add_all(summed.taken());
        source.with_sample_labels(|labels| {
            for (run, sums) in by_sample.iter().zip(summed.by_run()) {
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
        run.needs_samples() || groups_by_sample
    }

    fn add_sets(
        &self,
        cells: &mut StepValues,
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
            cells.add(group, run, sum);
        }
    }
}

/// Says what lines of sums are not.
fn tell_of_lines(names: &[&str], step_ns: i64, plan: &Plan, loaded: &mut Loaded) {
    let lost = names.iter().filter(|name| !KEPT_LABELS.contains(name));
    let lost: Vec<&str> = lost.copied().collect();
    if !lost.is_empty() && !plan.is_gauge() {
        let what = format!(
            "without {}: they are in lines of their own",
            lost.join(", ")
        );
        loaded.tell_of_sums(plan, Tier::TenMinutes, &what);
    }
    let tiers = [Tier::TenMinutes, Tier::Hourly].into_iter();
    let finest = tiers.rev().find(|tier| step_ns % tier.bucket_ns() == 0);
    let coarser = match finest {
        None => Tier::TenMinutes,
        Some(Tier::TenMinutes) => Tier::Hourly,
        Some(_) => return,
    };
    let what = "which last longer than a step: each is in the one in which it starts";
    loaded.tell_of_sums(plan, coarser, what);
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

fn lines(groups: Groups, points: &BTreeMap<(u32, i64), PointValue>) -> Vec<LabeledPoints> {
    let mut lines: Vec<LabeledPoints> = groups
        .by_labels
        .into_iter()
        .map(|(labels, number)| {
            let points = points.range((number, i64::MIN)..=(number, i64::MAX));
            let points = points.map(|(&(_, step), &value)| (step, value)).collect();
            LabeledPoints { labels, points }
        })
        .collect();
    lines.sort_by(|left, right| left.labels.cmp(&right.labels));
    lines
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
