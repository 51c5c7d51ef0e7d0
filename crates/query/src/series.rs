//! Values over time.

use std::collections::BTreeMap;
use std::sync::Arc;

use candela_model::Labels;
use candela_store::KEPT_LABELS;
use candela_store::Tier;

use crate::budget::Meter;
use crate::engine::Engine;
use crate::engine::Loaded;
use crate::error::QueryError;
use crate::line_values::Groups;
use crate::line_values::LineReader;
use crate::plan::Plan;
use crate::profiled::profiled_lines;
use crate::profiled::profiled_time;
use crate::query::Aggregation;
use crate::query::Answer;
use crate::query::Query;
use crate::rates::Rates;
use crate::run::Run;
use crate::step_values::StepValues;
use crate::steps::Steps;
use crate::taken::Taken;
use crate::tiers::coarsest_tier;
use crate::tiers::tier_of_steps;

/// Steps that read well, seconds.
const NICE_STEPS_S: [i64; 14] = [
    1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 21_600, 86_400,
];
/// Points of a line when the caller does not say: a screen has about that many pixels for it.
const DEFAULT_POINTS: i64 = 240;

/// How to draw lines.
#[derive(Clone, Debug, Default)]
pub struct SeriesOptions {
    /// Nanoseconds from one point to the next; a good one for the range when `None`.
    pub step_ns: Option<i64>,
    /// Labels of series or samples that tell lines apart; one line when empty.
    pub group_by: Vec<String>,
    /// Nanoseconds since the Unix epoch of a point, from which the others are so many steps away.
    /// Each then stands for the step that ends with it: a profile counts to the first one that is
    /// not before it. `None` is the start of the epoch, and points stand for the steps that begin
    /// with them.
    pub origin_ns: Option<i64>,
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
    /// Start of the step, nanoseconds since the Unix epoch and a multiple of the step, and value;
    /// with an origin the end of the step. Steps without a profile are left out.
    pub points: Vec<(i64, PointValue)>,
    /// How long the profiles of it took, what several cover counted once; `None` where none says so.
    pub profiled_ns: Option<i64>,
}

/// A value of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PointValue {
    /// In the unit of the type; means are rounded.
    Whole(i64),
    /// A rate, by second of the time that profiles were taken.
    Fraction(f64),
}

/// Values in the making.
#[derive(Debug)]
enum LineValues {
    Combined(StepValues),
    Rates(Rates),
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
            Some(step_ns) if step_ns > 0 => {
                let steps = Steps::new(step_ns, options.origin_ns);
                tier_of_steps(coarsest_tier(query, &names), steps)
            }
            _ => Tier::Raw,
        };
        let mut loaded = self.load_by(query, query.range, coarsest, &names)?;
        let plan = self.plan_of_values(query, &mut loaded)?;
        let steps = steps_of(options, &plan)?;
        let mut groups = Groups::default();
        let aggregation = match plan.aggregation(query) {
            // A state is there at each moment, and does not add up by second.
            Aggregation::Rate if plan.is_gauge() => Aggregation::Average,
            asked => asked,
        };
        tell_of_lines(&names, steps, aggregation, &plan, &mut loaded);
        let mut values = match aggregation {
            Aggregation::Rate => LineValues::Rates(Rates::new(steps, query.range)),
            _ => LineValues::Combined(StepValues::new(steps)),
        };
        let reader = LineReader {
            engine: self,
            plan: &plan,
            group_by: &options.group_by,
        };
        let mut taken = Taken::default();
        self.for_each_source(&plan, &mut loaded, |source, part, meter| {
            let before = values.combined_bytes();
            for run in &part.runs {
                values.add_profile(run.series, run.row.start_ns, run.row.merged_profiles);
            }
            let mut added = Ok(());
            let of_source = reader.read(
                source,
                &part.runs,
                meter,
                &mut groups,
                |line, run, value| {
                    if added.is_ok() {
                        added = values.add(line, run, value, meter);
                    }
                },
            )?;
            added?;
            taken.add_all(of_source);
            meter.allocate(values.combined_bytes() - before)?;
            Ok(())
        })?;
        for empty in &plan.empty {
            values.add_profile(empty.series, empty.start_ns, empty.merged_profiles);
        }
        let profiled = profiled_time(query, &plan, &loaded)?;
        let by_line = profiled_lines(query, &plan, &loaded, &names)?;
        let points = match &values {
            LineValues::Rates(rates) => rates.points(&profiled),
            LineValues::Combined(values) => values.points(aggregation),
        };
        let table = SeriesTable {
            step_ns: steps.step_ns(),
            series: lines(groups, &points, |labels| {
                let of_line = by_line.get(labels).map_or(&profiled, Arc::as_ref);
                of_line.known_length_ns()
            }),
        };
        let answer = self.answer(query, &loaded, &plan, taken, table)?;
        Ok(answer.profiled(&profiled))
    }
}

impl LineValues {
    /// Counts a profile of a series, whatever is in it.
    fn add_profile(&mut self, series: u32, start_ns: i64, merged_profiles: u32) {
        if let Self::Combined(values) = self {
            values.add_profile(series, start_ns, merged_profiles);
        }
    }

    /// Adds what a profile has of a line.
    fn add(&mut self, line: u32, run: &Run, value: i64, meter: &Meter) -> Result<(), QueryError> {
        match self {
            Self::Combined(values) => values.add(line, run, value),
            Self::Rates(rates) => return rates.add(line, run, value, meter),
        }
        Ok(())
    }

    /// Estimated bytes in memory. Rates count their own while they are added up.
    fn combined_bytes(&self) -> usize {
        match self {
            Self::Combined(values) => values.bytes(),
            Self::Rates(_) => 0,
        }
    }
}

/// Says what lines of sums are not.
fn tell_of_lines(
    names: &[&str],
    steps: Steps,
    aggregation: Aggregation,
    plan: &Plan,
    loaded: &mut Loaded,
) {
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
    let finest = tiers.rev().find(|&tier| steps.hold_buckets_of(tier));
    let coarser = match finest {
        None => Tier::TenMinutes,
        Some(Tier::TenMinutes) => Tier::Hourly,
        Some(_) => return,
    };
    let what = if aggregation == Aggregation::Rate {
        "which last longer than a step: each is spread evenly over its steps"
    } else if steps.have_origin() {
        "which do not begin and end with steps: each is in the one in which it starts"
    } else {
        "which last longer than a step: each is in the one in which it starts"
    };
    loaded.tell_of_sums(plan, coarser, what);
}

fn lines(
    groups: Groups,
    points: &BTreeMap<(u32, i64), PointValue>,
    profiled_ns: impl Fn(&Labels) -> Option<i64>,
) -> Vec<LabeledPoints> {
    let mut lines: Vec<LabeledPoints> = groups
        .into_lines()
        .map(|(labels, number)| {
            let points = points.range((number, i64::MIN)..=(number, i64::MAX));
            let points = points.map(|(&(_, step), &value)| (step, value)).collect();
            LabeledPoints {
                profiled_ns: profiled_ns(&labels),
                labels,
                points,
            }
        })
        .collect();
    lines.sort_by(|left, right| left.labels.cmp(&right.labels));
    lines
}

/// The asked steps, or good ones for the profiles of the plan.
pub(crate) fn steps_of(options: &SeriesOptions, plan: &Plan) -> Result<Steps, QueryError> {
    Ok(Steps::new(step_of(options, plan)?, options.origin_ns))
}

fn step_of(options: &SeriesOptions, plan: &Plan) -> Result<i64, QueryError> {
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
    Steps::new(step_ns, None).check_count(&(0..span_ns))?;
    Ok(step_ns)
}
