//! Erasing profiles by selector: their blocks are written again without them.
//!
//! Sums are first. A rollup does not keep every label, so which sums have something of what is
//! erased is told by the profiles themselves, and those sums are made again from what stays. When
//! a crash comes in between, the profiles are still there and the request can be made again.

use std::collections::BTreeSet;
use std::sync::Arc;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;
use candela_model::Selector;
use candela_model::Temporality;
use hashbrown::HashMap;
use hashbrown::HashSet;

use super::plan::Job;
use super::rollup::KEPT_LABELS;
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

/// A profile of a rollup.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SumKey {
    labels: Labels,
    profile_type: ProfileType,
    start_ns: i64,
}

/// By tier the sums that have something of what is erased.
type AffectedSums = HashMap<Tier, HashSet<SumKey>>;

impl Erasure {
    fn matches(&self, labels: &Labels, profile_type: &ProfileType) -> bool {
        self.is_of_type(profile_type)
            && (self.selector).matches(|name| labels.get(name).unwrap_or(""))
    }

    fn is_of_type(&self, profile_type: &ProfileType) -> bool {
        let wanted = self.profile_type.as_deref();
        wanted.is_none_or(|wanted| profile_type.to_string() == wanted)
    }

    fn has(&self, labels: &Labels, profile_type: &ProfileType, row: &ProfileRow) -> bool {
        self.range.contains(row.start_ns) && self.matches(labels, profile_type)
    }

    /// Whether the labels that a rollup keeps decide.
    fn is_exact_for_sums(&self) -> bool {
        let mut matchers = self.selector.matchers().iter();
        matchers.all(|matcher| KEPT_LABELS.contains(&matcher.name()))
    }

    /// Whether it fits as far as a rollup's labels tell.
    fn may_have(&self, labels: &Labels, profile_type: &ProfileType) -> bool {
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
        self.erase_sums(tenant, erasure, &affected, &sums, &throttle, &mut erased)?;
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

    fn blocks_of(&self, tenant: &str) -> Vec<Arc<Block>> {
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
                let key = sum_key(labels, profile_type, row, tier);
                affected.entry(tier).or_default().insert(key);
            }
        }
        Ok(is_found)
    }

    fn erase_sums(
        &self,
        tenant: &str,
        erasure: &Erasure,
        affected: &AffectedSums,
        sums: &[Arc<Block>],
        throttle: &Throttle<'_>,
        erased: &mut Erased,
    ) -> Result<(), StoreError> {
        let is_exact = erasure.is_exact_for_sums();
        let mut repaired: BTreeSet<(Tier, String)> = BTreeSet::new();
        for block in sums {
            let tier = block.tier();
            let none = HashSet::new();
            let affected = affected.get(&tier).unwrap_or(&none);
            let is_erased = |labels: &Labels, profile_type: &ProfileType, row: &ProfileRow| {
                let last_ns = row.start_ns.saturating_add(tier.bucket_ns() - 1);
                let is_in_range = erasure.range.overlaps(row.start_ns, last_ns);
                let key = sum_key(labels, profile_type, row, tier);
                affected.contains(&key)
                    || (is_in_range && is_exact && erasure.matches(labels, profile_type))
            };
            let profiles = block.profiles()?;
            let (mut found, mut kept_sums) = (false, 0);
            for row in &profiles.rows {
                let labels = &profiles.series[row.series as usize];
                let profile_type = &profiles.types[row.profile_type as usize];
                if is_erased(labels, profile_type, row) {
                    found = true;
                } else if erasure.range.contains(row.start_ns)
                    && profile_type.temporality() != Temporality::Gauge
                    && erasure.may_have(labels, profile_type)
                {
                    kept_sums += 1;
                }
            }
            erased.kept_sums += kept_sums;
            if !found {
                continue;
            }
            let date = block.meta().date.clone();
            let is_first = repaired.insert((tier, date.clone()));
            let sources = if is_first {
                self.rolled_up_blocks(tenant, &date)
            } else {
                Vec::new()
            };
            // What of an erased sum is not to be erased, from the profiles themselves.
            let repair = |labels: &Labels, profile_type: &ProfileType, row: &ProfileRow| {
                !erasure.has(labels, profile_type, row) && {
                    let key = sum_key(labels, profile_type, row, tier);
                    let start_ns = key.start_ns;
                    let last_ns = start_ns.saturating_add(tier.bucket_ns() - 1);
                    affected.contains(&key)
                        || (is_exact
                            && erasure.range.overlaps(start_ns, last_ns)
                            && erasure.matches(&key.labels, profile_type))
                }
            };
            let keep = |labels: &Labels, profile_type: &ProfileType, row: &ProfileRow| {
                !is_erased(labels, profile_type, row)
            };
            let repair = Repair {
                sources: &sources,
                tier,
                keep: &repair,
            };
            let job = job_of(tenant, block);
            let more = |settings: &super::job::JobSettings<'_>| repair.write(&job, settings);
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

/// Sums that are made again.
struct Repair<'a> {
    sources: &'a [Arc<Block>],
    tier: Tier,
    keep: &'a super::merge::Keep<'a>,
}

impl Repair<'_> {
    fn write(
        &self,
        job: &Job,
        settings: &super::job::JobSettings<'_>,
    ) -> Result<Vec<BlockMeta>, StoreError> {
        if self.sources.is_empty() {
            return Ok(Vec::new());
        }
        super::job::write_sums(job, self.sources, self.tier, self.keep, settings)
    }
}

impl Erased {
    fn count(&mut self, before: &BlockMeta, written: &[BlockMeta]) {
        self.blocks += 1;
        self.bytes_before += before.bytes;
        self.bytes_after += written.iter().map(|meta| meta.bytes).sum::<u64>();
    }
}

fn sum_key(labels: &Labels, profile_type: &ProfileType, row: &ProfileRow, tier: Tier) -> SumKey {
    let is_gauge = profile_type.temporality() == Temporality::Gauge;
    SumKey {
        labels: if is_gauge {
            labels.clone()
        } else {
            kept_labels(labels)
        },
        profile_type: profile_type.clone(),
        start_ns: bucket_start(row.start_ns, tier.bucket_ns()),
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
