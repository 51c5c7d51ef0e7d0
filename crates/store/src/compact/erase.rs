//! Erasing profiles by selector: their blocks are written again without them.
//!
//! Sums are first. A rollup does not keep every label, so which sums have something of what is
//! erased is told by the profiles themselves, and those sums are made again from what stays. When
//! a crash comes in between, the profiles are still there and the request can be made again.

use std::sync::Arc;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::Selector;

use super::erase_sums::AffectedSums;
use super::erase_sums::DoomedSums;
use super::erase_sums::SumKey;
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Sums of long ago that may have something of what was erased and that stay: a selector with
    /// labels that sums do not keep cannot tell, and their profiles are gone.
    pub kept_sums: u64,
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

    /// Whether the labels that a rollup keeps decide.
    pub(super) fn is_exact_for_sums(&self) -> bool {
        let mut matchers = self.selector.matchers().iter();
        matchers.all(|matcher| KEPT_LABELS.contains(&matcher.name()))
    }

    /// Whether it fits as far as a rollup's labels tell.
    pub(super) fn may_have(&self, labels: &Labels, profile_type: &ProfileType) -> bool {
        let mut matchers = self.selector.matchers().iter();
        self.is_of_type(profile_type)
            && matchers.all(|matcher| {
                let is_kept = KEPT_LABELS.contains(&matcher.name());
                !is_kept || matcher.matches(labels.get(matcher.name()).unwrap_or(""))
            })
    }

    /// Whether a block can have any of it, as far as its manifest tells.
    fn may_be_in(&self, meta: &BlockMeta) -> bool {
        let matchers = self.selector.matchers().iter();
        let matchers: Vec<_> = matchers
            .filter(|matcher| matcher.name() == SERVICE_NAME_LABEL)
            .collect();
        let wanted = self.profile_type.as_deref();
        let last_ns = meta.max_time_ns.saturating_add(meta.tier().bucket_ns());
        self.range.overlaps(meta.min_time_ns, last_ns)
            && meta.services.iter().any(|service| {
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
        let blocks = self.blocks_of(tenant);
        let (raw, sums): (Vec<_>, Vec<_>) = blocks
            .into_iter()
            .filter(|block| erasure.may_be_in(block.meta()))
            .partition(|block| block.tier() == Tier::Raw);
        let mut affected = AffectedSums::new();
        let mut erased = Erased::default();
        let mut to_rewrite = Vec::new();
        for block in raw {
            let found = self.find(&block, erasure, &mut affected, &mut erased)?;
            if found {
                to_rewrite.push(block);
            }
        }
        let doomed = DoomedSums {
            tenant,
            erasure,
            affected: &affected,
        };
        self.erase_sums(&doomed, &sums, &throttle, &mut erased)?;
        for block in to_rewrite {
            let keep = |labels: &Labels, profile_type: &ProfileType, row: &ProfileRow| {
                !erasure.has(labels, profile_type, row)
            };
            let job = job_of(tenant, &block);
            let written = self.run_job(&job, &keep, &|_| Ok(Vec::new()), &throttle)?;
            erased.count(block.meta(), &written.unwrap_or_default());
        }
        // The catalog forgets, and files that a query still reads go with it.
        drop(sums);
        self.apply_retention()?;
        self.catalog.scrub()?;
        Ok(erased)
    }

    pub(super) fn blocks_of(&self, tenant: &str) -> Vec<Arc<Block>> {
        let tenants = read(&self.tenants);
        let state = tenants.get(tenant);
        state.map_or_else(Vec::new, |state| state.blocks.clone())
    }

    /// Whether a block has profiles to erase, and which sums they are in.
    fn find(
        &self,
        block: &Block,
        erasure: &Erasure,
        affected: &mut AffectedSums,
        erased: &mut Erased,
    ) -> Result<bool, StoreError> {
        let profiles = block.profiles()?;
        let is_rolled_up = block.meta().level != Level::Flushed.number();
        let mut is_found = false;
        for row in &profiles.rows {
            let labels = &profiles.series[row.series as usize];
            let profile_type = &profiles.types[row.profile_type as usize];
            if !erasure.has(labels, profile_type, row) {
                continue;
            }
            is_found = true;
            erased.profiles += 1;
            erased.samples += u64::from(row.sample_count);
            if !is_rolled_up {
                continue;
            }
            for &tier in &self.options.rollups {
                let key = SumKey::of(labels, profile_type, row, tier);
                affected.entry(tier).or_default().insert(key);
            }
        }
        Ok(is_found)
    }
}

impl Erased {
    pub(super) fn count(&mut self, before: &BlockMeta, written: &[BlockMeta]) {
        self.blocks += 1;
        self.bytes_before += before.bytes;
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
