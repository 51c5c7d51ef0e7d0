//! Which label sets the samples of each profile have.

use std::ops::ControlFlow;
use std::sync::Arc;

use candela_store::Block;
use candela_store::BlockError;
use candela_store::BlockErrorKind;
use candela_store::HeadProfile;
use candela_store::HeadView;
use candela_store::ProfileTable;
use candela_store::SampleColumns;

use crate::budget::Meter;
use crate::error::Failure;
use crate::sources::Source;
use crate::sources::SourceData;

/// The sets of a block by profile. A block never changes, so they are read once and kept with its
/// tables.
#[derive(Debug)]
pub(crate) struct RowSets {
    /// For each row of the table of profiles where its sets end.
    ends: Vec<u32>,
    sets: Vec<u32>,
}

/// What has been seen of the profile at hand.
struct Collector<'a> {
    table: &'a ProfileTable,
    found: RowSets,
    /// By label set the number of the profile in which it was seen last, counted from 1.
    seen: Vec<u32>,
    outside: u64,
}

impl RowSets {
    /// The sets of a source's samples, by profile.
    pub(crate) fn of(source: &Source, meter: &Meter) -> Result<Arc<Self>, Failure> {
        match &source.data {
            SourceData::Head(view) => Ok(Arc::new(Self::of_head(view))),
            SourceData::Block(block) => block.derived("row_sets", || {
                let sets = Self::of_block(block, &source.profiles, meter)?;
                let bytes = (sets.ends.len() + sets.sets.len()) * size_of::<u32>();
                Ok((sets, bytes))
            }),
        }
    }

    /// The distinct sets of the samples of the profile at this position.
    pub(crate) fn get(&self, row: usize) -> &[u32] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.sets[start as usize..self.ends[row] as usize]
    }

    fn of_head(view: &HeadView) -> Self {
        let mut found = Self {
            ends: Vec::with_capacity(view.profiles.len()),
            sets: Vec::new(),
        };
        for profile in &view.profiles {
            found.sets.extend(sets_of_profile(profile));
            found.ends.push(found.sets.len() as u32);
        }
        found
    }

    fn of_block(block: &Block, table: &ProfileTable, meter: &Meter) -> Result<Self, Failure> {
        let columns = SampleColumns {
            label_sets: true,
            ..SampleColumns::default()
        };
        meter.read(block.scan_bytes(columns)?)?;
        let set_count = block.labels()?.sets.len();
        let _memory = meter.hold((set_count + table.rows.len()) * size_of::<u32>())?;
        let mut collector = Collector {
            table,
            found: Self {
                ends: Vec::with_capacity(table.rows.len()),
                sets: Vec::new(),
            },
            seen: vec![0; set_count],
            outside: 0,
        };
        let mut stopped = None;
        let all_rows = 0..block.meta().rows;
        block.scan_samples(&[all_rows], columns, &mut |chunk| {
            if let Err(error) = meter.check_time() {
                stopped = Some(error);
                return ControlFlow::Break(());
            }
            collector.add(chunk.first_row, chunk.label_sets);
            ControlFlow::Continue(())
        })?;
        if let Some(error) = stopped {
            return Err(error.into());
        }
        collector.finish(block)
    }
}

impl Collector<'_> {
    fn add(&mut self, first_row: u64, label_sets: &[u32]) {
        for (row, &set) in (first_row..).zip(label_sets) {
            self.end_profiles_before(row);
            let number = self.found.ends.len() as u32 + 1;
            match self.seen.get_mut(set as usize) {
                Some(seen) if *seen == number => {}
                Some(seen) => {
                    *seen = number;
                    self.found.sets.push(set);
                }
                None => self.outside += 1,
            }
        }
    }

    /// The rows of profiles follow one another, as the profiles do.
    fn end_profiles_before(&mut self, row: u64) {
        while let Some(profile) = self.table.rows.get(self.found.ends.len()) {
            if row < profile.first_row + u64::from(profile.sample_count) {
                return;
            }
            self.found.ends.push(self.found.sets.len() as u32);
        }
    }

    fn finish(mut self, block: &Block) -> Result<RowSets, Failure> {
        self.end_profiles_before(u64::MAX);
        if self.outside == 0 {
            return Ok(self.found);
        }
        Err(Failure::Block(BlockError {
            block_id: block.meta().block_id.clone(),
            kind: BlockErrorKind::Damaged,
            reason: format!("{} samples have labels that it does not hold", self.outside),
        }))
    }
}

fn sets_of_profile(profile: &HeadProfile) -> Vec<u32> {
    let mut sets: Vec<u32> = match &profile.details {
        Some(details) => details.label_sets.to_vec(),
        None => profile.nodes.first().map(|_| 0).into_iter().collect(),
    };
    sets.sort_unstable();
    sets.dedup();
    sets
}
