//! Which profiles and spans the points of lines are most of.

use candela_model::Labels;

use crate::engine::Engine;
use crate::error::QueryError;
use crate::parts::Exemplar;
use crate::parts::ExemplarKind;
use crate::parts::Part;
use crate::query::Answer;
use crate::query::Query;
use crate::series::SeriesOptions;
use crate::series::steps_of;

/// Bytes of an exemplar with a few labels.
const EXEMPLAR_BYTES: usize = 512;

/// The exemplars of lines over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExemplarTable {
    /// Nanoseconds from one point to the next.
    pub step_ns: i64,
    /// The lines, sorted by their labels.
    pub series: Vec<LabeledExemplars>,
}

/// The exemplars of one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabeledExemplars {
    /// The labels that it is grouped by.
    pub labels: Labels,
    /// The point as [`Engine::series`] has it, and its exemplar. Points without one are left out.
    pub exemplars: Vec<(i64, Exemplar)>,
}

impl Engine {
    /// For each point of each line the profile, or the span, of which it has most. Parts of a
    /// profile that came one by one are one.
    ///
    /// # Errors
    /// As [`Engine::series`].
    pub fn exemplars(
        &self,
        query: &Query,
        options: &SeriesOptions,
        kind: ExemplarKind,
    ) -> Result<Answer<ExemplarTable>, QueryError> {
        let names: Vec<&str> = options.group_by.iter().map(String::as_str).collect();
        let mut loaded = self.load_whole_profiles(query, &names)?;
        let plan = self.plan_of_values(query, &mut loaded)?;
        let steps = steps_of(options, &plan)?;
        let mut parts = self.parts(&plan, &mut loaded, steps, &options.group_by, kind)?;
        let groups = std::mem::take(&mut parts.groups);
        let sorted = parts.sorted();
        let place = |part: &Part<'_>| (part.line(), part.point_ns());
        let points = sorted.chunk_by(|left, right| place(left) == place(right));
        let best = points.filter_map(|of_point| {
            let of_point = of_point.iter().copied();
            of_point.reduce(|best, part| best.better(part, &plan))
        });
        let best: Vec<_> = best.collect();
        loaded.meter.allocate(best.len() * EXEMPLAR_BYTES)?;
        let lines = groups.into_lines().map(|(labels, line)| {
            let start = best.partition_point(|part| part.line() < line);
            let end = best.partition_point(|part| part.line() <= line);
            let of_line = best[start..end].iter();
            LabeledExemplars {
                labels,
                exemplars: of_line
                    .map(|part| (part.point_ns(), part.exemplar(&plan)))
                    .collect(),
            }
        });
        let mut series: Vec<LabeledExemplars> = lines.collect();
        series.sort_by(|left, right| left.labels.cmp(&right.labels));
        let table = ExemplarTable {
            step_ns: steps.step_ns(),
            series,
        };
        self.answer(query, &loaded, &plan, parts.taken, table)
    }
}
