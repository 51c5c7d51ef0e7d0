//! Erasing profiles by selector: their blocks are written again without them.
//!
//! Sums are first. A rollup does not keep every label, so which sums have something of what is
//! erased is told by the profiles themselves, and those sums are made again from what stays. When
//! a crash comes in between, the profiles are still there and the request can be made again.
//!
//! What cannot be done for one block is done for the others all the same, and is an error in the
//! end: an erasure that succeeds has left nothing.

use std::sync::Arc;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::Selector;
use candela_model::Temporality;
use hashbrown::HashSet;

use super::plan::Job;
use super::rollup::KEPT_LABELS;
use super::throttle::Throttle;
use crate::block::Block;
use crate::block::BlockMeta;
use crate::block::Level;
use crate::block::ProfileRow;
use crate::block::Tier;
use crate::error::StoreError;
use crate::shared::Shared;
use crate::snapshot::TimeRange;
use crate::sync::lock;
use crate::sync::read;

/// Which profiles of a tenant are to go.
#[derive(Clone, Debug)]
pub struct Erasure {
    /// Those of these series, told by the labels of the series alone.
    pub selector: Selector,
    /// Those of this type, an identifier; all types when `None`.
    pub profile_type: Option<String>,
    /// Those that start in this range.
    pub range: TimeRange,
}

/// What was erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Profiles as they came.
    pub profiles: u64,
    /// Their samples.
    pub samples: u64,
    /// Blocks that were written again or removed, those of sums included.
    pub blocks: u64,
    /// Bytes of those blocks before.
    pub bytes_before: u64,
    /// Bytes of those that took their place.
    pub bytes_after: u64,
    /// Sums that may have something of what was erased and that stay: a selector with labels that
    /// sums do not keep cannot tell, and not all of their profiles are there.
    pub kept_sums: u64,
    /// Sums that lost more than was asked for: they have something from outside of the range too,
    /// and not all of their profiles are there to make them again.
    pub partial_sums: u64,
    /// Files that hold what nobody reads any more, of whatever tenant, and that an erasure leaves to
    /// whoever put or keeps them there.
    pub leftover_files: Vec<String>,
}

/// An erasure at work.
pub(super) struct Erasing<'a> {
    pub(super) shared: &'a Shared,
    pub(super) tenant: &'a str,
    pub(super) erasure: &'a Erasure,
    pub(super) throttle: &'a Throttle<'a>,
    pub(super) erased: Erased,
    /// Days whose sums could not be written. Their profiles stay for the next try, which tells by
    /// them which sums these are.
    pub(super) days_left: HashSet<String>,
    first_error: Option<StoreError>,
}

impl Erasure {
    pub(super) fn matches(&self, labels: &Labels, profile_type: &ProfileType) -> bool {
        self.is_of_type(profile_type)
            && (self.selector).matches(|name| labels.get(name).unwrap_or(""))
    }

    fn is_of_type(&self, profile_type: &ProfileType) -> bool {
        let wanted = self.profile_type.as_deref();
        wanted.is_none_or(|wanted| profile_type.to_string() == wanted)
    }

    pub(super) fn has(
        &self,
        labels: &Labels,
        profile_type: &ProfileType,
        row: &ProfileRow,
    ) -> bool {
        self.range.contains(row.start_ns) && self.matches(labels, profile_type)
    }

    /// Whether the labels of sums of a type decide. Those of gauges have all that their profiles
    /// had.
    pub(super) fn is_exact_for_sums(&self, profile_type: &ProfileType) -> bool {
        let mut matchers = self.selector.matchers().iter();
        profile_type.temporality() == Temporality::Gauge
            || matchers.all(|matcher| KEPT_LABELS.contains(&matcher.name()))
    }

    /// Whether it fits as far as a sum's labels tell.
    pub(super) fn may_have(&self, labels: &Labels, profile_type: &ProfileType) -> bool {
        let has_all = profile_type.temporality() == Temporality::Gauge;
        let mut matchers = self.selector.matchers().iter();
        self.is_of_type(profile_type)
            && matchers.all(|matcher| {
                let is_kept = has_all || KEPT_LABELS.contains(&matcher.name());
                !is_kept || matcher.matches(labels.get(matcher.name()).unwrap_or(""))
            })
    }

    /// Whether a block can have any of it, as far as its manifest tells.
    pub(super) fn may_be_in(&self, meta: &BlockMeta) -> bool {
        let last_ns = meta.max_time_ns.saturating_add(meta.tier().bucket_ns());
        self.range.overlaps(meta.min_time_ns, last_ns) && self.may_be_of_services(meta)
    }

    /// The same whatever the times.
    pub(super) fn may_be_of_services(&self, meta: &BlockMeta) -> bool {
        let matchers = self.selector.matchers().iter();
        let matchers: Vec<_> = matchers
            .filter(|matcher| matcher.name() == SERVICE_NAME_LABEL)
            .collect();
        let wanted = self.profile_type.as_deref();
        meta.services.iter().any(|service| {
            wanted.is_none_or(|wanted| service.profile_type == wanted)
                && matchers
                    .iter()
                    .all(|matcher| matcher.matches(&service.service))
        })
    }
}

impl Shared {
    /// Erases what is in blocks. What came in since the last flush stays.
    pub(crate) fn erase(&self, tenant: &str, erasure: &Erasure) -> Result<Erased, StoreError> {
        let _only_one = lock(&self.maintenance);
        let throttle = Throttle::new(&self.is_stopping, &self.stop_requested, 100);
        let mut erasing = Erasing {
            shared: self,
            tenant,
            erasure,
            throttle: &throttle,
            erased: Erased::default(),
            days_left: HashSet::new(),
            first_error: None,
        };
        // What a failed merge left has it too.
        erasing.note(self.take_back_earlier());
        erasing.erase_sums();
        erasing.erase_profiles();
        // The catalog forgets, and files that a query still reads go with it.
        erasing.note(self.apply_retention());
        erasing.note(self.catalog.scrub());
        if let Some(error) = erasing.first_error {
            return Err(error);
        }
        self.check_erased(tenant, erasure)?;
        Ok(Erased {
            leftover_files: self.leftover_files()?,
            ..erasing.erased
        })
    }

    pub(super) fn blocks_of(&self, tenant: &str) -> Vec<Arc<Block>> {
        let tenants = read(&self.tenants);
        let state = tenants.get(tenant);
        state.map_or_else(Vec::new, |state| state.blocks.clone())
    }
}

impl Erasing<'_> {
    /// One block that cannot be rewritten is no reason not to do the others.
    fn erase_profiles(&mut self) {
        for block in self.shared.blocks_of(self.tenant) {
            let meta = block.meta();
            let is_raw = block.tier() == Tier::Raw;
            if !is_raw || !self.erasure.may_be_in(meta) || self.days_left.contains(&meta.date) {
                continue;
            }
            if let Err(error) = self.erase_in(&block) {
                let result = self.set_aside(std::slice::from_ref(&block), error);
                self.note(result);
            }
        }
    }

    fn erase_in(&mut self, block: &Arc<Block>) -> Result<(), StoreError> {
        let profiles = block.profiles()?;
        let is_found = |row: &&ProfileRow| {
            let profile_type = &profiles.types[row.profile_type as usize];
            let labels = &profiles.series[row.series as usize];
            self.erasure.has(labels, profile_type, row)
        };
        let found = || profiles.rows.iter().filter(is_found);
        let count = found().count() as u64;
        if count == 0 {
            return Ok(());
        }
        let samples: u64 = found().map(|row| u64::from(row.sample_count)).sum();
        let keep = |labels: &Labels, profile_type: &ProfileType, row: &ProfileRow| {
            !self.erasure.has(labels, profile_type, row)
        };
        let job = job_of(self.tenant, block);
        let written = (self.shared).run_job(&job, &keep, &|_| Ok(Vec::new()), self.throttle)?;
        // Where it is `None` the block does not answer any more, so there is nothing to try again:
        // retention deleted it, or a query found it damaged, and then it is among the unread.
        if let Some(written) = written {
            self.erased.profiles += count;
            self.erased.samples += samples;
            self.erased.count(std::slice::from_ref(block), &written);
        }
        Ok(())
    }

    /// Sets blocks aside that a step found damaged: they are named in the end, with all that are.
    ///
    /// # Errors
    /// The error that was given when it has another reason, for none of them is damaged.
    pub(super) fn set_aside(
        &self,
        blocks: &[Arc<Block>],
        error: StoreError,
    ) -> Result<(), StoreError> {
        if let StoreError::Block(damage) = &error {
            self.shared.report(damage)?;
        }
        let tenants = read(&self.shared.tenants);
        let state = tenants.get(self.tenant).into_iter();
        let mut quarantined = state.flat_map(|state| &state.quarantined);
        let is_one_of_them = |(meta, _): &(BlockMeta, String)| {
            let mut blocks = blocks.iter();
            blocks.any(|block| block.meta().block_id == meta.block_id)
        };
        if quarantined.any(is_one_of_them) {
            return Ok(());
        }
        Err(error)
    }

    /// Keeps the first of the errors of all steps.
    pub(super) fn note(&mut self, result: Result<(), StoreError>) {
        if let Err(error) = result {
            tracing::error!(%error, "a step of erasing failed");
            self.first_error.get_or_insert(error);
        }
    }
}

impl Erased {
    pub(super) fn count(&mut self, before: &[Arc<Block>], written: &[BlockMeta]) {
        self.blocks += before.len() as u64;
        self.bytes_before += before.iter().map(|block| block.meta().bytes).sum::<u64>();
        self.bytes_after += written.iter().map(|meta| meta.bytes).sum::<u64>();
    }
}

/// A block written again at its own level.
pub(crate) fn job_of(tenant: &str, block: &Arc<Block>) -> Job {
    let meta = block.meta();
    Job {
        tenant: tenant.to_owned(),
        date: meta.date.clone(),
        level: Level::from_number(meta.level).unwrap_or(Level::Flushed),
        inputs: vec![Arc::clone(block)],
    }
}
