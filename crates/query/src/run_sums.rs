//! Sums of each profile's samples, where the profile's total is not enough.

use candela_store::SampleColumns;
use hashbrown::HashMap;

use crate::budget::Meter;
use crate::error::Failure;
use crate::plan::Run;
use crate::sources::Source;
use crate::sources::SourceData;
use crate::sums::divided;
use crate::sums::for_each_chunk;

/// Sums of a run by label set.
pub(crate) type SumsBySet = HashMap<u32, i64>;

/// For each run the sums of the samples that it takes, by their labels.
pub(crate) fn sums_of_runs(
    source: &Source,
    runs: &[Run],
    meter: &Meter,
) -> Result<Vec<SumsBySet>, Failure> {
    let mut sums = vec![SumsBySet::new(); runs.len()];
    if runs.is_empty() {
        return Ok(sums);
    }
    match &source.data {
        SourceData::Head(view) => {
            for (run, sums) in runs.iter().zip(&mut sums) {
                let profile = &view.profiles[run.row.first_row as usize];
                for (index, &value) in profile.values.iter().enumerate() {
                    add(run, sums, profile.label_set(index), value);
                }
            }
        }
        SourceData::Block(block) => {
            let columns = SampleColumns { label_sets: true };
            meter.read(block.scan_bytes(columns)?)?;
            // Runs without samples have no first row of their own and get no chunk.
            let positions: HashMap<u64, usize> = runs
                .iter()
                .enumerate()
                .filter(|(_, run)| run.row.sample_count > 0)
                .map(|(position, run)| (run.row.first_row, position))
                .collect();
            for_each_chunk(block, runs, columns, meter, |run, chunk| {
                let sums = &mut sums[positions[&run.row.first_row]];
                for (&set, &value) in chunk.label_sets.iter().zip(chunk.values) {
                    add(run, sums, set, value);
                }
            })?;
        }
    }
    Ok(sums)
}

/// For each run its total: that of the profile where all samples count as they are.
pub(crate) fn totals_of_runs(
    source: &Source,
    runs: &[Run],
    meter: &Meter,
) -> Result<Vec<i64>, Failure> {
    let needs_samples = |run: &&Run| run.sets.is_some() || run.divisor != 1;
    let by_sample: Vec<Run> = runs.iter().filter(needs_samples).cloned().collect();
    let mut sums = sums_of_runs(source, &by_sample, meter)?.into_iter();
    let totals = runs.iter().map(|run| {
        if !needs_samples(&run) {
            return run.row.total;
        }
        let sums = sums.next().unwrap_or_default();
        sums.values()
            .fold(0, |total: i64, &sum| total.saturating_add(sum))
    });
    Ok(totals.collect())
}

fn add(run: &Run, sums: &mut SumsBySet, set: u32, value: i64) {
    if run.takes(set) {
        let sum = sums.entry(set).or_default();
        *sum = sum.saturating_add(divided(value, run.divisor));
    }
}
