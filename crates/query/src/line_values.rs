//! What the lines of a query have of each profile.

use std::collections::BTreeMap;

use candela_model::Labels;
use hashbrown::HashMap;

use crate::budget::Meter;
use crate::engine::Engine;
use crate::error::Failure;
use crate::matching::SampleLabels;
use crate::plan::Plan;
use crate::run::Run;
use crate::run_sums::SumsBySet;
use crate::sources::Source;
use crate::taken::Taken;

/// The lines that there are so far.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    by_labels: HashMap<Labels, u32>,
}

/// Tells the profiles of a plan apart by line.
pub(crate) struct LineReader<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) plan: &'a Plan,
    /// Labels of series or samples; one line when empty.
    pub(crate) group_by: &'a [String],
}

impl LineReader<'_> {
    /// Hands over what each line has of the profiles of a source: line, run and value.
    pub(crate) fn read(
        &self,
        source: &Source,
        runs: &[Run],
        meter: &Meter,
        groups: &mut Groups,
        mut visit: impl FnMut(u32, &Run, i64),
    ) -> Result<Taken, Failure> {
        let mut taken = Taken::default();
        let (by_sample, whole): (Vec<&Run>, Vec<&Run>) =
            runs.iter().partition(|run| self.needs_samples(source, run));
        for run in whole {
            let labels = &self.plan.series[run.series as usize];
            let line = groups.number(self.group_by, |name| labels.get(name).map(str::to_owned));
            visit(line, run, run.row.total);
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
                for (line, sum) in self.lines_of_sets(groups, run, sums, labels) {
                    visit(line, run, sum);
                }
            }
        })?;
        Ok(taken)
    }

    /// Whether the total of the profile is not enough.
    fn needs_samples(&self, source: &Source, run: &Run) -> bool {
        run.needs_samples() || self.groups_by_sample(source, run)
    }

    /// Whether samples of one profile may be in several lines.
    pub(crate) fn groups_by_sample(&self, source: &Source, run: &Run) -> bool {
        let labels = &self.plan.series[run.series as usize];
        let mut names = self.group_by.iter();
        names.any(|name| labels.get(name).is_none() && source.sample_labels.contains(name))
    }

    /// What each line has of the sums of a profile.
    fn lines_of_sets(
        &self,
        groups: &mut Groups,
        run: &Run,
        sums: &SumsBySet,
        sample_labels: &SampleLabels<'_>,
    ) -> BTreeMap<u32, i64> {
        let mut by_line: BTreeMap<u32, i64> = BTreeMap::new();
        for (&set, &sum) in sums {
            let line = self.line_of_set(groups, run, set, sample_labels);
            let total = by_line.entry(line).or_default();
            *total = total.saturating_add(sum);
        }
        by_line
    }

    /// The line that samples of a profile with this label set are in.
    pub(crate) fn line_of_set(
        &self,
        groups: &mut Groups,
        run: &Run,
        set: u32,
        sample_labels: &SampleLabels<'_>,
    ) -> u32 {
        let labels = &self.plan.series[run.series as usize];
        groups.number(self.group_by, |name| {
            let of_series = labels.get(name).map(str::to_owned);
            of_series.or_else(|| sample_labels.value(set, name))
        })
    }
}

impl Groups {
    /// The number of the line with these values of labels.
    pub(crate) fn number(
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

    /// The lines with their numbers, in any order.
    pub(crate) fn into_lines(self) -> impl Iterator<Item = (Labels, u32)> {
        self.by_labels.into_iter()
    }
}
