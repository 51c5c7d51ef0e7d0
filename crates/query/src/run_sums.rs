//! Sums of each profile's samples, where the profile's total is not enough.

use candela_store::SampleColumns;
use hashbrown::HashMap;

use crate::budget::Held;
use crate::budget::Meter;
use crate::error::Failure;
use crate::error::QueryError;
use crate::run::Run;
use crate::scan::for_each_chunk;
use crate::scan::read_runs;
use crate::sources::Source;
use crate::sources::SourceData;
use crate::sums::divided;
use crate::taken::Taken;

/// Sums of a run by label set.
pub(crate) type SumsBySet = HashMap<u32, i64>;

/// Sums of runs, with the memory that they take and how much they are made of.
#[derive(Debug)]
pub(crate) struct RunSums<'a> {
    pub(crate) by_run: Vec<SumsBySet>,
    pub(crate) taken: Taken,
    pub(crate) memory: Held<'a>,
}

impl RunSums<'_> {
    pub(crate) fn bytes(&self) -> usize {
        let entries: usize = self.by_run.iter().map(SumsBySet::capacity).sum();
        let entry_bytes = size_of::<(u32, i64)>() + 1;
        self.by_run.len() * size_of::<SumsBySet>() + entries * entry_bytes
    }

    fn charge(&mut self) -> Result<(), QueryError> {
        self.memory.resize(self.bytes())
    }
}

/// For each run the sums of the samples that it takes, by their labels.
pub(crate) fn sums_of_runs<'a>(
    source: &Source,
    runs: &[Run],
    meter: &'a Meter,
) -> Result<RunSums<'a>, Failure> {
    meter.check_time()?;
    let mut summed = RunSums {
        by_run: vec![SumsBySet::new(); runs.len()],
        taken: Taken::default(),
        memory: meter.hold(0)?,
    };
    if runs.is_empty() {
        return Ok(summed);
    }
    let RunSums { by_run, taken, .. } = &mut summed;
    match &source.data {
        SourceData::Head(view) => {
            for (run, sums) in runs.iter().zip(by_run) {
                let profile = &view.profiles[run.row.first_row as usize];
                let samples = run.samples_in(profile);
                let samples =
                    samples.map(|(index, node, value)| (node, profile.label_set(index), value));
                add(run, sums, taken, samples);
            }
        }
        SourceData::Block(block) => {
            let columns = SampleColumns {
                label_sets: true,
                ..SampleColumns::default()
            };
            read_runs(block, runs, columns, meter)?;
            for_each_chunk(block, runs, columns, meter, |position, chunk| {
                let columns = chunk
                    .stack_ids
                    .iter()
                    .zip(chunk.label_sets)
                    .zip(chunk.values);
                let samples = columns.map(|((&stack, &set), &value)| (stack, set, value));
                add(&runs[position], &mut by_run[position], taken, samples);
                Ok(())
            })?;
        }
    }
    summed.charge()?;
    Ok(summed)
}

fn add(
    run: &Run,
    sums: &mut SumsBySet,
    taken: &mut Taken,
    samples: impl Iterator<Item = (u32, u32, i64)>,
) {
    let (mut rows, mut stored) = (0, 0_i64);
    let is_taken = |&(stack, set, _): &(u32, u32, i64)| run.takes(set) && run.takes_stack(stack);
    for (_, set, value) in samples.filter(is_taken) {
        (rows, stored) = (rows + 1, stored.saturating_add(value));
        let sum = sums.entry(set).or_default();
        *sum = sum.saturating_add(divided(value, run.divisor));
    }
    taken.add(run, rows, stored);
}
