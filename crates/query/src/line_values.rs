//! What the lines of a query have of each profile.

use std::collections::BTreeMap;

use candela_model::Labels;
use candela_model::Link;
use hashbrown::HashMap;

use crate::budget::Meter;
use crate::engine::Engine;
use crate::error::Failure;
use crate::error::QueryError;
use crate::links::SPAN_ID;
use crate::links::TRACE_ID;
use crate::links::id_text;
use crate::matching::SampleLabels;
use crate::plan::Plan;
use crate::run::Run;
use crate::run_sums::SumsBySet;
use crate::sources::Source;
use crate::span_sums::Linked;
use crate::span_sums::sums_of_spans;
use crate::taken::Taken;

/// Bytes of a line of a trace or a span with its labels: there are far more of these than of others.
const LINE_BYTES: usize = 256;

/// So many new lines are counted at a time, before there are more of them.
const LINES_BETWEEN_COUNTS: usize = 1024;

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
        if self.groups_by_link() {
            return self.read_by_link(source, runs, meter, groups, visit);
        }
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

    /// The same where lines are of traces or spans.
    fn read_by_link(
        &self,
        source: &Source,
        runs: &[Run],
        meter: &Meter,
        groups: &mut Groups,
        mut visit: impl FnMut(u32, &Run, i64),
    ) -> Result<Taken, Failure> {
        let has_sets = |run: &Run| self.groups_by_sample(source, run);
        let links = sums_of_spans(source, runs, Linked::Whichever, has_sets, meter)?;
        let mut counted = groups.by_labels.len();
        let by_line = source.with_sample_labels(|labels| {
            let mut by_line: BTreeMap<(u32, u32), i64> = BTreeMap::new();
            for (&(position, set, link), &sum) in &links.sums {
                let run = &runs[position as usize];
                let line = self.line_of(groups, run, set, &link, labels);
                let total = by_line.entry((position, line)).or_default();
                *total = total.saturating_add(sum);
                let new_lines = groups.by_labels.len() - counted;
                if new_lines >= LINES_BETWEEN_COUNTS {
                    meter.allocate(new_lines * LINE_BYTES)?;
                    meter.check_time()?;
                    counted += new_lines;
                }
            }
            Ok::<_, QueryError>(by_line)
        })??;
        meter.allocate((groups.by_labels.len() - counted) * LINE_BYTES)?;
        for ((position, line), sum) in by_line {
            visit(line, &runs[position as usize], sum);
        }
        Ok(links.taken)
    }

    /// Whether lines are of traces or spans.
    fn groups_by_link(&self) -> bool {
        let mut names = self.group_by.iter();
        names.any(|name| name == TRACE_ID || name == SPAN_ID)
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
    fn line_of_set(
        &self,
        groups: &mut Groups,
        run: &Run,
        set: u32,
        sample_labels: &SampleLabels<'_>,
    ) -> u32 {
        self.line_of(groups, run, set, &Link::default(), sample_labels)
    }

    /// The same for samples of this trace and span, whose ids go before labels of their names.
    pub(crate) fn line_of(
        &self,
        groups: &mut Groups,
        run: &Run,
        set: u32,
        link: &Link,
        sample_labels: &SampleLabels<'_>,
    ) -> u32 {
        let labels = &self.plan.series[run.series as usize];
        groups.number(self.group_by, |name| {
            let of_link = id_text(link, name);
            let of_series = || labels.get(name).map(str::to_owned);
            let of_label = || sample_labels.value(set, name);
            of_link.or_else(of_series).or_else(of_label)
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
