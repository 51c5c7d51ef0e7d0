//! Samples with the time at which each was taken.

use candela_store::SampleColumns;
use candela_store::TimeRange;

use crate::budget::Meter;
use crate::error::Failure;
use crate::query::Query;
use crate::run::Run;
use crate::scan::for_each_chunk;
use crate::scan::read_runs;
use crate::shelf::Shelf;
use crate::sources::Source;
use crate::sources::SourceData;

/// How long before a range a stored profile may begin of which samples are in it.
pub(crate) const LONGEST_WINDOW_NS: i64 = 3_600_000_000_000;
/// The same of a file, all of which is at hand: no recording is longer than a week.
pub(crate) const LONGEST_RECORDING_NS: i64 = 7 * 24 * LONGEST_WINDOW_NS;

/// A sample that a run takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimedSample {
    /// Position of the run.
    pub(crate) run: usize,
    /// Position in the profile.
    pub(crate) position: u32,
    /// A stack of the block, or a node of the head.
    pub(crate) stack: u32,
    pub(crate) label_set: u32,
    /// 0 when unknown.
    pub(crate) time_ns: i64,
    /// As it is stored.
    pub(crate) value: i64,
}

/// The same question over all profiles that may have samples in its range.
pub(crate) fn widened(query: &Query, shelf: &Shelf) -> Query {
    Query {
        range: reaching_back(query.range, shelf),
        ..query.clone()
    }
}

/// A range and the profiles before it that may reach into it.
pub(crate) fn reaching_back(range: TimeRange, shelf: &Shelf) -> TimeRange {
    let longest_ns = match shelf {
        Shelf::Store(_) => LONGEST_WINDOW_NS,
        Shelf::Loose { .. } => LONGEST_RECORDING_NS,
    };
    TimeRange {
        from_ns: range.from_ns.saturating_sub(longest_ns),
        to_ns: range.to_ns,
    }
}

/// Hands over every sample that the runs take, in the order of the runs.
pub(crate) fn for_each_sample(
    source: &Source,
    runs: &[Run],
    meter: &Meter,
    mut visit: impl FnMut(TimedSample),
) -> Result<(), Failure> {
    match &source.data {
        SourceData::Head(view) => {
            for (position, run) in runs.iter().enumerate() {
                meter.check_time()?;
                let profile = &view.profiles[run.row.first_row as usize];
                for (index, stack, value) in run.samples_in(profile) {
                    let label_set = profile.label_set(index);
                    if run.takes(label_set) && run.takes_stack(stack) {
                        visit(TimedSample {
                            run: position,
                            position: index as u32,
                            stack,
                            label_set,
                            time_ns: profile.time_ns(index),
                            value,
                        });
                    }
                }
            }
            Ok(())
        }
        SourceData::Block(block) => {
            let columns = SampleColumns {
                label_sets: true,
                times: true,
                ..SampleColumns::default()
            };
            read_runs(block, runs, columns, meter)?;
            for_each_chunk(block, runs, columns, meter, |position, chunk| {
                let run = &runs[position];
                let first = (chunk.first_row - run.row.first_row) as u32;
                for (index, &value) in chunk.values.iter().enumerate() {
                    let (stack, label_set) = (chunk.stack_ids[index], chunk.label_sets[index]);
                    if run.takes(label_set) && run.takes_stack(stack) {
                        visit(TimedSample {
                            run: position,
                            position: first + index as u32,
                            stack,
                            label_set,
                            time_ns: chunk.times_ns[index],
                            value,
                        });
                    }
                }
                Ok(())
            })
        }
    }
}
