//! Sums of sources, those of blocks out of what is kept where they are.

use std::sync::Arc;

use crate::budget::Held;
use crate::budget::Meter;
use crate::engine::Engine;
use crate::error::Failure;
use crate::kept::Question;
use crate::run::Run;
use crate::run_sums::RunSums;
use crate::run_sums::SumsBySet;
use crate::run_sums::sums_of_runs;
use crate::sources::Source;
use crate::sources::SourceData;
use crate::sums::Amount;
use crate::sums::StackSums;
use crate::sums::sum_by_stack;
use crate::sums::weight_of;
use crate::taken::Taken;

/// Sums of a source by stack.
#[derive(Debug)]
pub(crate) struct SourceSums<'a, A> {
    known: Arc<(StackSums<A>, Taken)>,
    /// What is kept has a budget of its own; what is not counts in the query's.
    _memory: Option<Held<'a>>,
}

/// Sums of a source by run and label set.
#[derive(Debug)]
pub(crate) struct SourceRunSums<'a> {
    known: Arc<(Vec<SumsBySet>, Taken)>,
    _memory: Option<Held<'a>>,
}

impl<A> SourceSums<'_, A> {
    pub(crate) fn sums(&self) -> &StackSums<A> {
        &self.known.0
    }

    pub(crate) fn taken(&self) -> Taken {
        self.known.1
    }
}

impl SourceRunSums<'_> {
    /// In the order of the runs.
    pub(crate) fn by_run(&self) -> &[SumsBySet] {
        &self.known.0
    }

    pub(crate) fn taken(&self) -> Taken {
        self.known.1
    }
}

impl Engine {
    /// The runs of a source added up by stack, by label set as well when `by_labels`. `weights`
    /// are those of the series; none when all count as they are.
    pub(crate) fn sums_by_stack<'a, A: Amount>(
        &self,
        source: &Source,
        runs: &[Run],
        by_labels: bool,
        weights: &[f64],
        meter: &'a Meter,
    ) -> Result<SourceSums<'a, A>, Failure> {
        meter.check_time()?;
        let mut memory = None;
        let mut sum = || -> Result<((StackSums<A>, Taken), usize), Failure> {
            let summed = sum_by_stack::<A>(source, runs, by_labels, weights, meter)?;
            memory = Some(summed.memory);
            let sums = if self.kept.is_on() {
                summed.sums.compact()
            } else {
                summed.sums
            };
            let bytes = sums.bytes();
            Ok(((sums, summed.taken), bytes))
        };
        let known = match &source.data {
            SourceData::Head(_) => Arc::new(sum()?.0),
            SourceData::Block(block) => {
                let kind = format!("stacks {} {by_labels}", std::any::type_name::<A>());
                let question = || Question::new(&kind, runs, |run| weight_of(run, weights));
                self.kept.get_or_make(block, question, sum)?
            }
        };
        Ok(SourceSums {
            known,
            _memory: memory,
        })
    }

    /// For each run of a source the sums of the samples that it takes, by their labels.
    pub(crate) fn sums_by_run<'a>(
        &self,
        source: &Source,
        runs: &[Run],
        meter: &'a Meter,
    ) -> Result<SourceRunSums<'a>, Failure> {
        meter.check_time()?;
        let mut memory = None;
        let mut sum = || -> Result<((Vec<SumsBySet>, Taken), usize), Failure> {
            let summed = sums_of_runs(source, runs, meter)?;
            let bytes = summed.bytes();
            let RunSums {
                by_run,
                taken,
                memory: held,
            } = summed;
            memory = Some(held);
            Ok(((by_run, taken), bytes))
        };
        let known = match &source.data {
            SourceData::Head(_) => Arc::new(sum()?.0),
            // Without runs there is nothing to look up.
            SourceData::Block(_) if runs.is_empty() => Arc::new(sum()?.0),
            SourceData::Block(block) => {
                let question = || Question::new("runs", runs, |_| 1.0);
                self.kept.get_or_make(block, question, sum)?
            }
        };
        Ok(SourceRunSums {
            known,
            _memory: memory,
        })
    }

    /// For each run its total: that of the profile where all samples count as they are.
    pub(crate) fn totals_of_runs(
        &self,
        source: &Source,
        runs: &[Run],
        meter: &Meter,
    ) -> Result<(Vec<i64>, Taken), Failure> {
        let by_sample = runs.iter().filter(|run| run.needs_samples());
        let by_sample: Vec<Run> = by_sample.cloned().collect();
        let summed = self.sums_by_run(source, &by_sample, meter)?;
        let mut taken = summed.taken();
        let mut sums = summed.by_run().iter();
        let totals = runs.iter().map(|run| {
            if !run.needs_samples() {
                taken.add_whole(run);
                return run.row.total;
            }
            let values = sums.next().into_iter().flat_map(SumsBySet::values);
            values.fold(0, |total: i64, &sum| total.saturating_add(sum))
        });
        let totals = totals.collect();
        Ok((totals, taken))
    }
}
