//! One job: its blocks written and checked, but not yet known to anybody.

use std::sync::Arc;

use twox_hash::XxHash3_128;
use ulid::Ulid;

use super::checksum::Checksum;
use super::merge::Keep;
use super::merge::Merged;
use super::plan::Job;
use super::plan::Part;
use super::plan::PartLimits;
use super::plan::parts;
use super::rollup::Tap;
use super::rollup::TierProfiles;
use super::source::MergeSource;
use super::throttle::Throttle;
use super::undo::BegunBlocks;
use crate::block::Block;
use crate::block::BlockIdentity;
use crate::block::BlockLayout;
use crate::block::BlockMeta;
use crate::block::Level;
use crate::block::MemoryContent;
use crate::block::MemorySource;
use crate::block::SampleSource;
use crate::block::Tier;
use crate::block::write_tables;
use crate::error::StoreError;
use crate::head::HeadProfile;
use crate::head::HeadTables;
use crate::storage::BlockStorage;

/// How jobs are done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobSettings<'a> {
    pub(crate) storage: &'a dyn BlockStorage,
    pub(crate) limits: PartLimits,
    /// Which tiers are made with the blocks of an hour.
    pub(crate) rollups: &'a [Tier],
    pub(crate) created_at_ns: i64,
    pub(crate) throttle: &'a Throttle<'a>,
    /// Told of each block before it is written.
    pub(crate) begun: &'a BegunBlocks,
}

/// The number of the first part of sums that are made again.
const SUMS_FROM: usize = 1 << 20;

/// What all blocks of a job have in common.
struct Writing<'a> {
    job: &'a Job,
    settings: &'a JobSettings<'a>,
    sources: Vec<String>,
    written: Vec<BlockMeta>,
}

/// Writes the tables of the blocks that take the place of the job's, without the profiles that `keep` does not want. None are written where nothing stays.
///
/// # Errors
/// When a block cannot be read or written, or what was written is not what was read.
pub(crate) fn write_job(
    job: &Job,
    keep: &Keep<'_>,
    settings: &JobSettings<'_>,
) -> Result<Vec<BlockMeta>, StoreError> {
    let mut writing = Writing::new(job, settings);
    for (number, part) in parts(&job.inputs, settings.limits).iter().enumerate() {
        writing.write_part(number, part, keep)?;
    }
    Ok(writing.written)
}

/// Writes the sums of wanted profiles of other blocks, as a part of a job on blocks of sums.
///
/// # Errors
/// As [`write_job`].
pub(super) fn write_sums(
    job: &Job,
    sources: &[Arc<Block>],
    tier: Tier,
    keep: &Keep<'_>,
    settings: &JobSettings<'_>,
) -> Result<Vec<BlockMeta>, StoreError> {
    let mut writing = Writing::new(job, settings);
    for (number, part) in parts(sources, settings.limits).iter().enumerate() {
        let merged = Merged::read(sources, part, keep);
        let mut merged = merged.map_err(|error| writing.failed(&error.to_string()))?;
        let rollups = {
            let source = MergeSource::new(&merged, settings.throttle);
            let source = source.map_err(|reason| writing.failed(&reason))?;
            let mut tap = Tap::new(source, &merged.list, &merged.tables, &[tier]);
            let mut samples = Vec::new();
            for _ in &merged.list.rows {
                samples.clear();
                let read = tap.next_profile(&mut samples);
                read.map_err(|reason| writing.failed(&reason))?;
            }
            tap.finish()
        };
        for rollup in rollups {
            // The numbers of parts are those of a job's own blocks as well.
            writing.write_rollup(SUMS_FROM + number, rollup, &mut merged.tables)?;
        }
    }
    Ok(writing.written)
}

impl<'a> Writing<'a> {
    fn new(job: &'a Job, settings: &'a JobSettings<'a>) -> Self {
        let blocks = job.inputs.iter();
        let mut sources: Vec<String> = blocks.map(|block| block.meta().block_id.clone()).collect();
        sources.sort_unstable();
        Self {
            job,
            settings,
            sources,
            written: Vec::new(),
        }
    }

    fn write_part(
        &mut self,
        number: usize,
        part: &Part,
        keep: &Keep<'_>,
    ) -> Result<(), StoreError> {
        let merged = Merged::read(&self.job.inputs, part, keep);
        let mut merged = merged.map_err(|error| self.failed(&error.to_string()))?;
        if merged.list.rows.is_empty() {
            return Ok(());
        }
        let tiers = if self.is_first_merge() {
            self.settings.rollups
        } else {
            &[]
        };
        let rollups = self.write_merged(number, part, keep, &merged, tiers)?;
        for rollup in rollups {
            self.write_rollup(number, rollup, &mut merged.tables)?;
        }
        Ok(())
    }

    fn write_merged(
        &mut self,
        number: usize,
        part: &Part,
        keep: &Keep<'_>,
        merged: &Merged,
        tiers: &[Tier],
    ) -> Result<Vec<TierProfiles>, StoreError> {
        let layout = BlockLayout::new(&merged.tables, &merged.list, &merged.ends);
        let source = MergeSource::new(merged, self.settings.throttle);
        let source = source.map_err(|reason| self.failed(&reason))?;
        let mut tap = Tap::new(source, &merged.list, &merged.tables, tiers);
        let start_ns = merged.list.rows.iter().map(|row| row.start_ns).min();
        let identity = self.identity(self.job.level, number, start_ns.unwrap_or(0));
        self.settings.begun.add(&identity);
        let meta = write_tables(self.settings.storage, &identity, &layout, &mut tap)?;
        let mut before = Checksum::default();
        for input in &merged.inputs {
            let of_part: &Keep<'_> = &|labels, profile_type, row| {
                let service = labels.get(candela_model::SERVICE_NAME_LABEL).unwrap_or("");
                part.has(service, row.start_ns) && keep(labels, profile_type, row)
            };
            let checksum = Checksum::of(&input.block, of_part);
            before = before.and(checksum.map_err(|error| self.failed(&error.to_string()))?);
        }
        self.check(&meta, before)?;
        self.written.push(meta);
        Ok(tap.finish())
    }

    fn write_rollup(
        &mut self,
        number: usize,
        rollup: TierProfiles,
        tables: &mut HeadTables,
    ) -> Result<(), StoreError> {
        let level = match rollup.tier {
            Tier::Raw | Tier::TenMinutes => Level::TenMinutes,
            Tier::Hourly => Level::Hourly,
        };
        let profiles = rollup.into_head(tables);
        if profiles.is_empty() {
            return Ok(());
        }
        let start_ns = profiles.iter().map(|profile| profile.start_ns).min();
        let references: Vec<&HeadProfile> = profiles.iter().collect();
        let content = MemoryContent::new(&references, tables.parents().len());
        let layout = BlockLayout::new(tables, &content.list, &content.ends);
        let mut source = MemorySource::new(content.profiles);
        let identity = self.identity(level, number, start_ns.unwrap_or(0));
        self.settings.begun.add(&identity);
        let meta = write_tables(self.settings.storage, &identity, &layout, &mut source)?;
        self.written.push(meta);
        Ok(())
    }

    /// Reads back what was written.
    fn check(&self, meta: &BlockMeta, before: Checksum) -> Result<(), StoreError> {
        let block = self.job.inputs[0].sibling(meta.clone());
        let after = Checksum::of(&block, &|_, _, _| true);
        let after = after.map_err(|error| self.failed(&error.to_string()))?;
        block.forget();
        if after == before {
            return Ok(());
        }
        Err(self.failed(&format!(
            "{} samples were merged and {} were read back, or they differ",
            before.samples, after.samples
        )))
    }

    fn identity(&self, level: Level, part: usize, start_ns: i64) -> BlockIdentity {
        let job = self.job;
        let first = job.inputs[0].meta();
        // What another log wrote has sequences of its own: as those of this one they would say that
        // records are in blocks which nobody has written yet.
        let metas = job.inputs.iter().map(|block| block.meta());
        let of_writer = metas.filter(|meta| meta.writer_id == first.writer_id);
        let sequences = of_writer.clone().map(|meta| meta.first_sequence);
        let last_sequences = of_writer.map(|meta| meta.last_sequence);
        let milliseconds = u64::try_from(start_ns / 1_000_000).unwrap_or(0);
        let origin = format!(
            "{}/{}/{}/{part}",
            job.tenant,
            self.sources.join("+"),
            level.number()
        );
        let random = XxHash3_128::oneshot(origin.as_bytes());
        BlockIdentity {
            block_id: Ulid::from_parts(milliseconds, random).to_string(),
            tenant: job.tenant.clone(),
            date: job.date.clone(),
            level,
            created_at_ns: self.settings.created_at_ns,
            writer_id: first.writer_id.clone(),
            first_sequence: sequences.min().unwrap_or(0),
            last_sequence: last_sequences.max().unwrap_or(0),
            sources: self.sources.clone(),
            has_frames: true,
        }
    }

    fn is_first_merge(&self) -> bool {
        let mut inputs = self.job.inputs.iter();
        self.job.level == Level::Hour
            && inputs.all(|block| block.meta().level == Level::Flushed.number())
    }

    fn failed(&self, reason: &str) -> StoreError {
        StoreError::BlockWrite {
            block_id: format!("merged from {}", self.sources.join(", ")),
            reason: reason.to_owned(),
        }
    }
}
