//! Values over time.

use std::collections::BTreeMap;

use candela_model::Labels;
use candela_store::KEPT_LABELS;
use candela_store::Tier;

use crate::engine::Engine;
use crate::engine::Loaded;
use crate::error::QueryError;
use crate::line_values::Groups;
use crate::line_values::LineReader;
use crate::plan::Plan;
use crate::query::Answer;
use crate::query::Query;
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
/// Points that one answer may have.
const MAX_POINTS: i64 = 1_000_000;

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
}

/// A value of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PointValue {
    /// In the unit of the type; means are rounded.
    Whole(i64),
    /// A rate, by second.
    Fraction(f64),
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
        tell_of_lines(&names, steps, &plan, &mut loaded);
        let mut groups = Groups::default();
        let mut cells = StepValues::new(steps);
        let reader = LineReader {
            engine: self,
            plan: &plan,
            group_by: &options.group_by,
        };
        let mut taken = Taken::default();
        self.for_each_source(&plan, &mut loaded, |source, part, meter| {
            let before = cells.bytes();
            for run in &part.runs {
                cells.add_profile(run.series, run.row.start_ns, run.row.merged_profiles);
            }
            let of_source = reader.read(
                source,
                &part.runs,
                meter,
                &mut groups,
                |line, run, value| {
                    cells.add(line, run, value);
                },
            )?;
            taken.add_all(of_source);
            meter.allocate(cells.bytes() - before)?;
            Ok(())
        })?;
        for empty in &plan.empty {
            cells.add_profile(empty.series, empty.start_ns, empty.merged_profiles);
        }
        let table = SeriesTable {
            step_ns: steps.step_ns(),
            series: lines(groups, &cells.points(plan.aggregation(query))),
        };
        self.answer(query, &loaded, &plan, taken, table)
    }
}

/// Says what lines of sums are not.
fn tell_of_lines(names: &[&str], steps: Steps, plan: &Plan, loaded: &mut Loaded) {
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
    let what = if steps.have_origin() {
        "which do not begin and end with steps: each is in the one in which it starts"
    } else {
        "which last longer than a step: each is in the one in which it starts"
    };
    loaded.tell_of_sums(plan, coarser, what);
}

fn lines(groups: Groups, points: &BTreeMap<(u32, i64), PointValue>) -> Vec<LabeledPoints> {
    let mut lines: Vec<LabeledPoints> = groups
        .into_lines()
        .map(|(labels, number)| {
            let points = points.range((number, i64::MIN)..=(number, i64::MAX));
            let points = points.map(|(&(_, step), &value)| (step, value)).collect();
            LabeledPoints { labels, points }
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
    if span_ns / step_ns > MAX_POINTS {
        return Err(QueryError::BadRequest(format!(
            "step of {step_ns} ns makes {} points, more than {MAX_POINTS}; ask for a longer step",
            span_ns / step_ns
        )));
    }
    Ok(step_ns)
}
