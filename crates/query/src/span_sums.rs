//! Sums of each span's samples, or of all by their traces and spans.

use candela_model::Link;
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

/// What tells the samples of a source apart: run, label set, trace and span.
type Key = (u32, u32, Link);

/// Which samples are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linked {
    /// Those that belong to a span.
    OfSpans,
    /// All, and those that belong to none together.
    Whichever,
}

/// Sums of samples by span.
#[derive(Debug)]
pub(crate) struct SpanSums<'a> {
    pub(crate) sums: HashMap<Key, i64>,
    linked: Linked,
    pub(crate) taken: Taken,
    memory: Held<'a>,
}

/// For each run the sums of the samples that it takes, by span; by label set where `has_sets` says that
/// it matters.
pub(crate) fn sums_of_spans<'a>(
    source: &Source,
    runs: &[Run],
    linked: Linked,
    has_sets: impl Fn(&Run) -> bool,
    meter: &'a Meter,
) -> Result<SpanSums<'a>, Failure> {
    meter.check_time()?;
    let mut sums = SpanSums {
        sums: HashMap::new(),
        linked,
        taken: Taken::default(),
        memory: meter.hold(0)?,
    };
    let has_sets: Vec<bool> = runs.iter().map(has_sets).collect();
    match &source.data {
        SourceData::Head(view) => {
            for (position, run) in runs.iter().enumerate() {
                let profile = &view.profiles[run.row.first_row as usize];
                if linked == Linked::OfSpans && profile.details.is_none() {
                    continue;
                }
                let samples = run.samples_in(profile).map(|(index, node, value)| {
                    let set = profile.label_set(index);
                    ((node, set, profile.link(index)), value)
                });
                sums.add(position, run, has_sets[position], samples)?;
            }
        }
        SourceData::Block(block) if linked == Linked::OfSpans && !block.has_links()? => {}
        SourceData::Block(block) => {
            let columns = SampleColumns {
                label_sets: true,
                links: block.has_links()?,
                ..SampleColumns::default()
            };
            read_runs(block, runs, columns, meter)?;
            for_each_chunk(block, runs, columns, meter, |position, chunk| {
                let samples = (0..chunk.values.len()).map(|index| {
                    let link = Link {
                        trace_id: chunk.trace_ids.get(index).copied().unwrap_or_default(),
                        span_id: chunk.span_ids.get(index).copied().unwrap_or_default(),
                    };
                    let place = (chunk.stack_ids[index], chunk.label_sets[index], link);
                    (place, chunk.values[index])
                });
                sums.add(position, &runs[position], has_sets[position], samples)
            })?;
        }
    }
    Ok(sums)
}

impl SpanSums<'_> {
    fn add(
        &mut self,
        position: usize,
        run: &Run,
        has_sets: bool,
        samples: impl Iterator<Item = ((u32, u32, Link), i64)>,
    ) -> Result<(), QueryError> {
        let (mut rows, mut stored) = (0, 0_i64);
        for ((stack, set, link), value) in samples {
            let is_wanted = self.linked == Linked::Whichever || link.span_id != [0; 8];
            let is_taken = is_wanted && run.takes(set) && run.takes_stack(stack);
            if !is_taken {
                continue;
            }
            (rows, stored) = (rows + 1, stored.saturating_add(value));
            let key = (position as u32, if has_sets { set } else { 0 }, link);
            let sum = self.sums.entry(key).or_default();
            *sum = sum.saturating_add(divided(value, run.divisor));
        }
        self.taken.add(run, rows, stored);
        let entry_bytes = size_of::<(Key, i64)>() + 1;
        self.memory.resize(self.sums.capacity() * entry_bytes)
    }
}
