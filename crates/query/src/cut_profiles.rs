//! Profiles of which only a part is in a range.
//!
//! A profile belongs to the range in which its window starts, which is right for windows that are short
//! beside the range. A recording may be longer than what is looked at of it: where it is known when its
//! samples were taken, these count by their own times in short ranges.

use std::ops::Range;
use std::sync::Arc;

use candela_store::ProfileRow;
use candela_store::TimeRange;
use hashbrown::HashMap;

use crate::budget::Meter;
use crate::engine::Engine;
use crate::engine::Loaded;
use crate::error::Failure;
use crate::error::QueryError;
use crate::query::Query;
use crate::run::Run;
use crate::sample_times::for_each_sample;
use crate::sample_times::reaching_back;
use crate::shelf::Shelf;
use crate::sources::Source;

/// Ranges up to this length are cut by the times of samples. In longer ones the two profiles at the ends
/// of a series matter little, and finding those that began before costs what an hour more costs. Files are cut
/// in every range: they are few profiles, which may be as long as all of what is shown.
const LONGEST_CUT_NS: i64 = 600_000_000_000;
/// Bytes of a list of ranges beside what is in it.
const LIST_BYTES: usize = 64;

/// The samples in the range of profiles that are partly in it, by the first row of the profile.
#[derive(Debug, Default)]
pub(crate) struct CutProfiles(HashMap<u64, Arc<Vec<Range<u32>>>>);

/// A range that is cut by the times of samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CutRange {
    range: TimeRange,
    /// What has to be looked at.
    pub(crate) loaded: TimeRange,
}

/// What is in the range of one profile.
#[derive(Debug, Default)]
struct Part {
    samples: Vec<Range<u32>>,
    total: i64,
    has_times: bool,
}

impl CutProfiles {
    /// The samples of a profile that are in the range; `None` when all are.
    pub(crate) fn samples_of(&self, row: &ProfileRow) -> Option<Arc<Vec<Range<u32>>>> {
        let is_possible = !self.0.is_empty() && row.sample_count > 0;
        is_possible
            .then(|| self.0.get(&row.first_row).map(Arc::clone))
            .flatten()
    }
}

impl CutRange {
    /// `None` where profiles count as a whole. A question for single profiles names them by their starts.
    pub(crate) fn of(query: &Query, range: TimeRange, shelf: &Shelf) -> Option<Self> {
        let asked = query.range;
        let is_short = asked.to_ns.saturating_sub(asked.from_ns) <= LONGEST_CUT_NS;
        let is_cut = is_short || matches!(shelf, Shelf::Loose { .. });
        (is_cut && query.profiles.is_empty()).then(|| Self {
            range: asked,
            loaded: reaching_back(range, shelf),
        })
    }

    /// Whether a window is in the range with a part of it only.
    fn is_partly_in(self, row: &ProfileRow) -> bool {
        let end_ns = row.start_ns.saturating_add(row.duration_ns);
        let begins_before = row.start_ns < self.range.from_ns && end_ns > self.range.from_ns;
        let ends_behind = self.range.contains(row.start_ns) && end_ns > self.range.to_ns;
        row.sample_count > 0 && (begins_before || ends_behind)
    }
}

impl Engine {
    /// Leaves the samples in the range of profiles that are partly in it, as if their windows were no
    /// longer than that. Those without times are not touched.
    pub(crate) fn cut_profiles(
        &self,
        cut: CutRange,
        loaded: &mut Loaded,
    ) -> Result<(), QueryError> {
        let mut readable = Vec::with_capacity(loaded.sources.len());
        for mut source in std::mem::take(&mut loaded.sources) {
            let done = source.cut_to(cut, &loaded.meter);
            if self.or_leave_out(done, &mut loaded.left_out)?.is_some() {
                readable.push(source);
            }
        }
        loaded.sources = readable;
        Ok(())
    }
}

impl Source {
    fn cut_to(&mut self, cut: CutRange, meter: &Meter) -> Result<(), Failure> {
        let rows = self.profiles.rows.iter().enumerate();
        let positions: Vec<usize> = rows
            .filter(|(_, row)| cut.is_partly_in(row))
            .map(|(position, _)| position)
            .collect();
        if positions.is_empty() || !self.has_times()? {
            return Ok(());
        }
        let runs: Vec<Run> = positions
            .iter()
            .map(|&position| Run::whole(self.profiles.rows[position]))
            .collect();
        let mut parts: Vec<Part> = Vec::new();
        parts.resize_with(runs.len(), Part::default);
        let _memory = meter.hold(runs.len() * (size_of::<Run>() + size_of::<Part>()))?;
        for_each_sample(self, &runs, meter, |sample| {
            let part = &mut parts[sample.run];
            part.has_times |= sample.time_ns != 0;
            let time_ns = match sample.time_ns {
                0 => runs[sample.run].row.start_ns,
                time_ns => time_ns,
            };
            if cut.range.contains(time_ns) {
                part.add(sample.position, sample.value);
            }
        })?;
        let ranges: usize = parts.iter().map(|part| part.samples.len()).sum();
        meter.allocate(self.profiles.bytes() + ranges * size_of::<Range<u32>>())?;
        meter.allocate(parts.len() * LIST_BYTES)?;
        let table = Arc::make_mut(&mut self.profiles);
        for (position, part) in positions.into_iter().zip(parts) {
            let row = &mut table.rows[position];
            let is_out = part.samples.is_empty() && !cut.range.contains(row.start_ns);
            if !part.has_times || is_out {
                continue;
            }
            let end_ns = row.start_ns.saturating_add(row.duration_ns);
            row.start_ns = row.start_ns.max(cut.range.from_ns);
            row.duration_ns = end_ns.min(cut.range.to_ns).saturating_sub(row.start_ns);
            row.total = part.total;
            self.cut.0.insert(row.first_row, Arc::new(part.samples));
        }
        Ok(())
    }
}

impl Part {
    /// Samples come in ascending order.
    fn add(&mut self, position: u32, value: i64) {
        self.total = self.total.saturating_add(value);
        match self.samples.last_mut() {
            Some(last) if last.end == position => last.end += 1,
            _ => self.samples.push(position..position + 1),
        }
    }
}
