//! Reading the samples of runs out of a block.

use std::ops::ControlFlow;
use std::ops::Range;

use candela_store::Block;
use candela_store::SampleChunk;
use candela_store::SampleColumns;

use crate::budget::Meter;
use crate::error::Failure;
use crate::error::QueryError;
use crate::run::Run;

/// The clock is looked at after so many rows.
const ROWS_BETWEEN_LOOKS: usize = 32 << 10;
/// What a chunk costs beside its rows.
const ROWS_LIKE_A_CHUNK: usize = 32;

/// Counts the share of a block's bytes that a scan of the runs reads.
pub(crate) fn read_runs(
    block: &Block,
    runs: &[Run],
    columns: SampleColumns,
    meter: &Meter,
) -> Result<(), Failure> {
    let all_rows = u128::from(block.meta().rows.max(1));
    let bytes = u128::from(block.scan_bytes(columns)?) * u128::from(row_count(runs)) / all_rows;
    Ok(meter.read(u64::try_from(bytes).unwrap_or(u64::MAX))?)
}

/// Hands over the rows of each run that are looked at, with the position of the run.
pub(crate) fn for_each_chunk(
    block: &Block,
    runs: &[Run],
    columns: SampleColumns,
    meter: &Meter,
    mut visit: impl FnMut(usize, SampleChunk<'_>) -> Result<(), QueryError>,
) -> Result<(), Failure> {
    let mut ranges: Vec<Range<u64>> = Vec::with_capacity(runs.len());
    let mut owners: Vec<usize> = Vec::with_capacity(runs.len());
    for (position, run) in runs.iter().enumerate() {
        ranges.extend(run.row_ranges());
        owners.resize(ranges.len(), position);
    }
    let mut stopped: Option<QueryError> = None;
    let mut current = 0;
    let mut rows_unlooked = 0;
    block.scan_samples(&ranges, columns, &mut |chunk| {
        while chunk.first_row >= ranges[current].end {
            current += 1;
        }
        // Chunks may be as small as profiles, and a look at the clock is dear beside some samples.
        rows_unlooked += chunk.values.len() + ROWS_LIKE_A_CHUNK;
        let looked = if rows_unlooked >= ROWS_BETWEEN_LOOKS {
            rows_unlooked = 0;
            meter.check_time()
        } else {
            meter.check_cancelled()
        };
        if let Err(error) = looked.and_then(|()| visit(owners[current], chunk)) {
            stopped = Some(error);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    stopped.map_or(Ok(()), |error| Err(error.into()))
}

pub(crate) fn row_count(runs: &[Run]) -> u64 {
    runs.iter().map(|run| u64::from(run.row.sample_count)).sum()
}
