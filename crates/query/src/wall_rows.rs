//! Which stored profiles of wall time are in an answer: these alone cover others.

use std::sync::Arc;

use candela_store::ProfileRow;

use crate::budget::Meter;
use crate::error::Failure;
use crate::link_test::LinkTest;
use crate::matching::SeriesMatch;
use crate::plan::sets_of_matches;
use crate::query::Query;
use crate::run::Run;
use crate::run_sums::sums_of_runs;
use crate::sources::Source;

/// Those of a source's rows of which the answer has a sample. Each profile decides for itself, by the
/// labels and links of its own samples: what else is in its block changes whenever blocks are cut anew.
pub(crate) fn rows_in_answer(
    source: &Source,
    query: &Query,
    matches: &[SeriesMatch],
    mut rows: Vec<ProfileRow>,
    meter: &Meter,
) -> Result<Vec<ProfileRow>, Failure> {
    // Where a label is looked for in samples, a profile without any is not in the answer; elsewhere it
    // must not be either, for whether it is looked for depends on the rest of the block.
    rows.retain(|row| row.sample_count > 0 && matches[row.series as usize].is_possible());
    if rows.is_empty() {
        return Ok(rows);
    }
    let _memory = meter.hold(rows.len() * size_of::<Run>())?;
    let sets = sets_of_matches(source, query, matches)?;
    let runs = rows.into_iter().map(|row| Run {
        row,
        series: row.series,
        divisor: 1,
        event_value: None,
        sets: sets[row.series as usize].clone(),
        stacks: None,
        samples: source.cut.samples_of(&row),
    });
    let mut runs: Vec<Run> = runs.collect();
    if !query.links.is_empty() {
        runs = linked_runs(source, query, runs, meter)?;
    }
    let (by_label, whole): (Vec<Run>, Vec<Run>) =
        runs.into_iter().partition(|run| run.sets.is_some());
    let summed = sums_of_runs(source, &by_label, meter)?;
    let labelled = by_label.iter().zip(&summed.by_run);
    let labelled = labelled.filter(|(_, sums)| !sums.is_empty());
    let labelled = labelled.map(|(run, _)| run.row);
    let rows: Vec<ProfileRow> = whole.iter().map(|run| run.row).chain(labelled).collect();
    Ok(rows)
}

/// Those with samples of the chosen traces and spans, and these alone.
fn linked_runs(
    source: &Source,
    query: &Query,
    runs: Vec<Run>,
    meter: &Meter,
) -> Result<Vec<Run>, Failure> {
    let test = LinkTest::of(&query.links);
    let mut samples = test.samples_of_runs(source, &runs, &source.profiles.series, meter)?;
    samples.resize(runs.len(), Vec::new());
    let runs = runs.into_iter().zip(samples);
    let linked = runs.filter(|(_, samples)| !samples.is_empty());
    let linked = linked.map(|(run, samples)| Run {
        samples: Some(Arc::new(samples)),
        ..run
    });
    Ok(linked.collect())
}
