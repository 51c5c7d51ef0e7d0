//! Erasing sums: those that have something of what is erased are made again from what stays.

use std::collections::BTreeSet;
use std::sync::Arc;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::Temporality;
use hashbrown::HashMap;
use hashbrown::HashSet;

use super::erase::Erased;
use super::erase::Erasure;
use super::erase::job_of;
use super::job::JobSettings;
use super::job::write_sums;
use super::merge::Keep;
use super::plan::Job;
use super::rollup::bucket_start;
use super::rollup::kept_labels;
use super::throttle::Throttle;
use crate::block::Block;
use crate::block::BlockMeta;
use crate::block::Level;
use crate::block::ProfileRow;
use crate::block::Tier;
use crate::error::StoreError;
use crate::shared::Shared;

/// A profile of a rollup.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SumKey {
    labels: Labels,
    profile_type: ProfileType,
    start_ns: i64,
}

/// By tier the sums that have something of what is erased.
pub(super) type AffectedSums = HashMap<Tier, HashSet<SumKey>>;

/// Which sums of a tenant have something of what is erased.
pub(super) struct DoomedSums<'a> {
    pub(super) tenant: &'a str,
    pub(super) erasure: &'a Erasure,
    pub(super) affected: &'a AffectedSums,
}

/// Sums that are made again.
struct Repair<'a> {
    sources: &'a [Arc<Block>],
    tier: Tier,
    keep: &'a Keep<'a>,
}

impl Repair<'_> {
    fn write(&self, job: &Job, settings: &JobSettings<'_>) -> Result<Vec<BlockMeta>, StoreError> {
        if self.sources.is_empty() {
            return Ok(Vec::new());
        }
        write_sums(job, self.sources, self.tier, self.keep, settings)
    }
}

impl SumKey {
    /// The sum of a tier that a profile is in; that of a sum is its own.
    pub(super) fn of(
        labels: &Labels,
        profile_type: &ProfileType,
        row: &ProfileRow,
        tier: Tier,
    ) -> Self {
        let is_gauge = profile_type.temporality() == Temporality::Gauge;
        Self {
            labels: if is_gauge {
                labels.clone()
            } else {
                kept_labels(labels)
            },
            profile_type: profile_type.clone(),
            start_ns: bucket_start(row.start_ns, tier.bucket_ns()),
        }
    }
}

impl DoomedSums<'_> {
    fn has(&self, key: &SumKey, tier: Tier) -> bool {
        if self
            .affected
            .get(&tier)
            .is_some_and(|keys| keys.contains(key))
        {
            return true;
        }
        let last_ns = key.start_ns.saturating_add(tier.bucket_ns() - 1);
        self.erasure.range.overlaps(key.start_ns, last_ns)
            && self.erasure.is_exact_for_sums()
            && self.erasure.matches(&key.labels, &key.profile_type)
    }

    /// Whether a block of sums has any of them. Those that may be and that nobody can tell are
    /// counted.
    fn are_in(&self, block: &Block, kept_sums: &mut u64) -> Result<bool, StoreError> {
        let tier = block.tier();
        let profiles = block.profiles()?;
        let mut is_found = false;
        for row in &profiles.rows {
            let labels = &profiles.series[row.series as usize];
            let profile_type = &profiles.types[row.profile_type as usize];
            if self.has(&SumKey::of(labels, profile_type, row, tier), tier) {
                is_found = true;
            } else if self.erasure.range.contains(row.start_ns)
                && profile_type.temporality() != Temporality::Gauge
                && self.erasure.may_have(labels, profile_type)
            {
                *kept_sums += 1;
            }
        }
        Ok(is_found)
    }
}

impl Shared {
    /// Writes the blocks of sums again in which something changes.
    pub(super) fn erase_sums(
        &self,
        doomed: &DoomedSums<'_>,
        sums: &[Arc<Block>],
        throttle: &Throttle<'_>,
        erased: &mut Erased,
    ) -> Result<(), StoreError> {
        let mut repaired: BTreeSet<(Tier, &str)> = BTreeSet::new();
        for block in sums {
            if !doomed.are_in(block, &mut erased.kept_sums)? {
                continue;
            }
            let (tier, date) = (block.tier(), block.meta().date.as_str());
            // A day may have its sums in more than one block; they are made again once.
            let sources = if repaired.insert((tier, date)) {
                self.rolled_up_blocks(doomed.tenant, date)
            } else {
                Vec::new()
            };
            let repair = Repair {
                sources: &sources,
                tier,
                keep: &|labels, profile_type, row| {
                    !doomed.erasure.has(labels, profile_type, row)
                        && doomed.has(&SumKey::of(labels, profile_type, row, tier), tier)
                },
            };
            let keep = |labels: &Labels, profile_type: &ProfileType, row: &ProfileRow| {
                !doomed.has(&SumKey::of(labels, profile_type, row, tier), tier)
            };
            let job = job_of(doomed.tenant, block);
            let more = |settings: &JobSettings<'_>| repair.write(&job, settings);
            let written = self.run_job(&job, &keep, &more, throttle)?;
            erased.count(block.meta(), &written.unwrap_or_default());
        }
        Ok(())
    }

    /// The blocks of a day whose sums are in rollups.
    fn rolled_up_blocks(&self, tenant: &str, date: &str) -> Vec<Arc<Block>> {
        let mut blocks = self.blocks_of(tenant);
        blocks.retain(|block| {
            let meta = block.meta();
            meta.date == date && meta.tier() == Tier::Raw && meta.level != Level::Flushed.number()
        });
        blocks
    }
}
