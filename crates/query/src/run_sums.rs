//! Sums of each profile's samples, where the profile's total is not enough.

use candela_store::SampleColumns;
use hashbrown::HashMap;

use crate::budget::Held;
use crate::budget::Meter;
use crate::error::Failure;
use crate::error::QueryError;
use crate::plan::Run;
use crate::sources::Source;
use crate::sources::SourceData;
use crate::sums::divided;
use crate::sums::for_each_chunk;
use crate::sums::read_runs;
use crate::taken::Taken;

/// Sums of a run by label set.
pub(crate) type SumsBySet = HashMap<u32, i64>;

/// Sums of runs, with the memory that they take and how much they are made of.
#[derive(Debug)]
pub(crate) struct RunSums<'a> {
    pub(crate) by_run: Vec<SumsBySet>,
    pub(crate) taken: Taken,
    memory: Held<'a>,
}

impl RunSums<'_> {
    fn charge(&mut self) -> Result<(), QueryError> {
        let entries: usize = self.by_run.iter().map(SumsBySet::capacity).sum();
        let entry_bytes = size_of::<(u32, i64)>() + 1;
        let bytes = self.by_run.len() * size_of::<SumsBySet>() + entries * entry_bytes;
        self.memory.resize(bytes)
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
                let sets = (0..profile.len()).map(|index| profile.label_set(index));
                add(run, sums, taken, sets.zip(profile.values.iter().copied()));
            }
        }
        SourceData::Block(block) => {
            let columns = SampleColumns { label_sets: true };
            read_runs(block, runs, columns, meter)?;
            // Runs without samples have no first row of their own and get no chunk.
            let positions: HashMap<u64, usize> = runs
                .iter()
                .enumerate()
                .filter(|(_, run)| run.row.sample_count > 0)
                .map(|(position, run)| (run.row.first_row, position))
                .collect();
            for_each_chunk(block, runs, columns, meter, |run, chunk| {
                let sums = &mut by_run[positions[&run.row.first_row]];
                let sets = chunk.label_sets.iter().copied();
                add(run, sums, taken, sets.zip(chunk.values.iter().copied()));
                Ok(())
            })?;
        }
    }
    summed.charge()?;
    Ok(summed)
}

/// For each run its total: that of the profile where all samples count as they are.
pub(crate) fn totals_of_runs(
    source: &Source,
    runs: &[Run],
    meter: &Meter,
) -> Result<(Vec<i64>, Taken), Failure> {
    let needs_samples = |run: &&Run| run.sets.is_some() || run.divisor != 1;
    let by_sample: Vec<Run> = runs.iter().filter(needs_samples).cloned().collect();
    let summed = sums_of_runs(source, &by_sample, meter)?;
    let mut taken = summed.taken;
    let mut sums = summed.by_run.into_iter();
    let totals = runs.iter().map(|run| {
        if !needs_samples(&run) {
            taken.add_whole(run);
            return run.row.total;
        }
        let sums = sums.next().unwrap_or_default();
        sums.values()
            .fold(0, |total: i64, &sum| total.saturating_add(sum))
    });
    let totals = totals.collect();
    Ok((totals, taken))
}

fn add(
    run: &Run,
    sums: &mut SumsBySet,
    taken: &mut Taken,
    samples: impl Iterator<Item = (u32, i64)>,
) {
    let (mut rows, mut stored) = (0, 0_i64);
    for (set, value) in samples.filter(|&(set, _)| run.takes(set)) {
        (rows, stored) = (rows + 1, stored.saturating_add(value));
        let sum = sums.entry(set).or_default();
        *sum = sum.saturating_add(divided(value, run.divisor));
    }
    taken.add(run, rows, stored);
}
