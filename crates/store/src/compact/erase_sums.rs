//! Erasing sums: those that have something of what is erased are made again from what stays.
//!
//! A day's sums of a tier are one job. All of its blocks change in one transaction, so a sum never
//! counts twice, and none is lost when a block goes away meanwhile: then the job is done again.

use std::collections::BTreeSet;
use std::sync::Arc;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::Temporality;
use hashbrown::HashMap;

use super::erase::Erasing;
use super::erase::Erasure;
use super::job::JobSettings;
use super::job::write_sums;
use super::plan::Job;
use super::rollup::bucket_start;
use super::rollup::kept_labels;
use crate::block::Block;
use crate::block::Level;
use crate::block::ProfileRow;
use crate::block::Tier;
use crate::error::BlockError;
use crate::error::StoreError;
use crate::sync::read;

/// A profile of a rollup.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SumKey {
    labels: Labels,
    profile_type: ProfileType,
    start_ns: i64,
}

/// What is known of a sum that may have something of what is erased.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// In how many rows it is: of several blocks, or of several periods.
    rows: u64,
    /// The profiles that it is of.
    profiles: u64,
    /// Those of them that are there.
    found: u64,
    /// Those of them that are erased.
    erased: u64,
}

/// What becomes of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It has nothing of what is erased.
    Stays,
    /// It may have something; to remove it would take what others have in it.
    Unknown,
    /// Everything in it is erased.
    Goes,
    /// It is made again from the profiles that stay.
    Remade,
    /// The same, though more than the erased profiles is missing.
    RemadeInPart,
}

/// A tier's sums of a day that may have something of what is erased.
#[derive(Debug)]
struct Day<'a> {
    erasure: &'a Erasure,
    tier: Tier,
    sums: Vec<Arc<Block>>,
    /// The profiles that they were made of, as far as they are there.
    sources: Vec<Arc<Block>>,
}

/// What becomes of sums; of those that are not in it nothing does.
struct Fates(HashMap<SumKey, (Fate, Tally)>);

impl Fate {
    fn of(key: &SumKey, tally: &Tally, is_day_whole: bool, erasure: &Erasure, tier: Tier) -> Self {
        let is_exact = erasure.is_exact_for_sums(&key.profile_type);
        let range = erasure.range;
        let end_ns = key.start_ns.saturating_add(tier.bucket_ns());
        if is_exact && range.from_ns <= key.start_ns && end_ns <= range.to_ns {
            return Self::Goes;
        }
        // With a block set aside the profiles that are there may be others than those of the sum.
        let is_complete = is_day_whole && tally.found >= tally.profiles;
        match (is_complete, is_exact) {
            (true, _) if tally.erased == 0 => Self::Stays,
            (true, _) => Self::Remade,
            // Only the range cuts through it, and nobody can say what is on which side. All of it
            // is of series that are to be erased, so it is better gone as a whole.
            (false, true) => Self::RemadeInPart,
            // Made again it would lack what others have in it.
            (false, false) => Self::Unknown,
        }
    }

    fn is_changed(self) -> bool {
        !matches!(self, Self::Stays | Self::Unknown)
    }

    fn is_remade(self) -> bool {
        matches!(self, Self::Remade | Self::RemadeInPart)
    }
}

impl Day<'_> {
    /// The sum that a profile is in, when it may have something of what is erased; that of a sum is
    /// its own.
    fn key_of(
        &self,
        labels: &Labels,
        profile_type: &ProfileType,
        row: &ProfileRow,
    ) -> Option<SumKey> {
        let start_ns = bucket_start(row.start_ns, self.tier.bucket_ns());
        let last_ns = start_ns.saturating_add(self.tier.bucket_ns() - 1);
        let erasure = self.erasure;
        if !erasure.range.overlaps(start_ns, last_ns) || !erasure.may_have(labels, profile_type) {
            return None;
        }
        let is_gauge = profile_type.temporality() == Temporality::Gauge;
        Some(SumKey {
            labels: if is_gauge {
                labels.clone()
            } else {
                kept_labels(labels)
            },
            profile_type: profile_type.clone(),
            start_ns,
        })
    }

    fn tallies(&self) -> Result<HashMap<SumKey, Tally>, BlockError> {
        let mut tallies: HashMap<SumKey, Tally> = HashMap::new();
        self.visit(&self.sums, &mut |key, _, _, row| {
            let tally = tallies.entry(key).or_default();
            tally.rows += 1;
            tally.profiles += u64::from(row.merged_profiles);
        })?;
        self.visit(&self.sources, &mut |key, labels, profile_type, row| {
            let Some(tally) = tallies.get_mut(&key) else {
                return;
            };
            tally.found += u64::from(row.merged_profiles);
            tally.erased += u64::from(self.erasure.has(labels, profile_type, row));
        })?;
        Ok(tallies)
    }

    fn visit(
        &self,
        blocks: &[Arc<Block>],
        visit: &mut dyn FnMut(SumKey, &Labels, &ProfileType, &ProfileRow),
    ) -> Result<(), BlockError> {
        for block in blocks {
            let profiles = block.profiles()?;
            for row in &profiles.rows {
                let labels = &profiles.series[row.series as usize];
                let profile_type = &profiles.types[row.profile_type as usize];
                if let Some(key) = self.key_of(labels, profile_type, row) {
                    visit(key, labels, profile_type, row);
                }
            }
        }
        Ok(())
    }

    /// Makes other blocks of those in which a sum changes; `None` when there are none.
    fn job(&self, tenant: &str, date: &str, fates: &Fates) -> Result<Option<Job>, BlockError> {
        let mut inputs = Vec::new();
        for block in &self.sums {
            let mut is_changed = false;
            self.visit(std::slice::from_ref(block), &mut |key, _, _, _| {
                is_changed |= fates.is(&key, Fate::is_changed);
            })?;
            if is_changed {
                inputs.push(Arc::clone(block));
            }
        }
        let levels = inputs.iter().map(|block| block.meta().level);
        let mut levels = levels.filter_map(Level::from_number);
        let Some(first) = levels.next() else {
            return Ok(None);
        };
        // Hours that are made again together with their day are of the day from then on.
        let is_of_one_level = levels.all(|level| level == first);
        Ok(Some(Job {
            tenant: tenant.to_owned(),
            date: date.to_owned(),
            level: if is_of_one_level { first } else { first.next() },
            inputs,
        }))
    }
}

impl Fates {
    fn is(&self, key: &SumKey, has: impl Fn(Fate) -> bool) -> bool {
        self.0.get(key).is_some_and(|(fate, _)| has(*fate))
    }

    fn rows(&self, of: Fate) -> u64 {
        let found = self.0.values().filter(|(fate, _)| *fate == of);
        found.map(|(_, tally)| tally.rows).sum()
    }
}

impl<'a> Erasing<'a> {
    /// Writes the sums again in which something changes.
    pub(super) fn erase_sums(&mut self) {
        let blocks = self.shared.blocks_of(self.tenant);
        let days: BTreeSet<(Tier, String)> = blocks
            .iter()
            .filter(|block| block.tier() != Tier::Raw && self.erasure.may_be_in(block.meta()))
            .map(|block| (block.tier(), block.meta().date.clone()))
            .collect();
        drop(blocks);
        for (tier, date) in days {
            let result = self.erase_day(tier, &date);
            if result.is_err() {
                self.days_left.insert(date);
            }
            self.note(result);
        }
    }

    /// Tries again while blocks go away, be they damaged or deleted by retention. There are ever
    /// fewer, so this ends.
    fn erase_day(&mut self, tier: Tier, date: &str) -> Result<(), StoreError> {
        loop {
            let day = self.day(tier, date);
            match self.try_day(&day, date) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => {
                    // The job has looked at its own blocks, and at none that it read beside them.
                    if !matches!(error, StoreError::Block(_)) {
                        self.shared.quarantine_damaged(&day.sources);
                    }
                    let blocks = [&*day.sums, &*day.sources].concat();
                    self.set_aside(&blocks, error)?;
                }
            }
        }
    }

    /// Whether it is done; not when one of the blocks has gone away.
    fn try_day(&mut self, day: &Day<'_>, date: &str) -> Result<bool, StoreError> {
        let tallies = day.tallies()?;
        let is_day_whole = self.is_day_whole(date);
        let fates = tallies.into_iter().map(|(key, tally)| {
            let fate = Fate::of(&key, &tally, is_day_whole, day.erasure, day.tier);
            (key, (fate, tally))
        });
        let fates = Fates(fates.collect());
        if let Some(job) = day.job(self.tenant, date, &fates)? {
            let has_fate = |labels: &Labels,
                            profile_type: &ProfileType,
                            row: &ProfileRow,
                            is_wanted: fn(Fate) -> bool| {
                let key = day.key_of(labels, profile_type, row);
                key.is_some_and(|key| fates.is(&key, is_wanted))
            };
            let keep = |labels: &Labels, profile_type: &ProfileType, row: &ProfileRow| {
                !has_fate(labels, profile_type, row, Fate::is_changed)
            };
            let add = |labels: &Labels, profile_type: &ProfileType, row: &ProfileRow| {
                !day.erasure.has(labels, profile_type, row)
                    && has_fate(labels, profile_type, row, Fate::is_remade)
            };
            let more = |settings: &JobSettings<'_>| {
                if day.sources.is_empty() {
                    return Ok(Vec::new());
                }
                write_sums(&job, &day.sources, day.tier, &add, settings)
            };
            let written = self.shared.run_job(&job, &keep, &more, self.throttle)?;
            let Some(written) = written else {
                return Ok(false);
            };
            self.erased.count(&job.inputs, &written);
        }
        self.erased.kept_sums += fates.rows(Fate::Unknown);
        self.erased.partial_sums += fates.rows(Fate::RemadeInPart);
        Ok(true)
    }

    fn day(&self, tier: Tier, date: &str) -> Day<'a> {
        let mut blocks = self.shared.blocks_of(self.tenant);
        blocks.retain(|block| block.meta().date == date);
        let (mut sources, mut sums): (Vec<_>, Vec<_>) = blocks
            .into_iter()
            .partition(|block| block.tier() == Tier::Raw);
        sums.retain(|block| block.tier() == tier && self.erasure.may_be_in(block.meta()));
        // What was flushed only is in no sums yet. Beyond the range, too, are profiles that stay in
        // sums of which a part goes.
        sources.retain(|block| {
            let is_rolled_up = block.meta().level != Level::Flushed.number();
            is_rolled_up && self.erasure.may_be_of_services(block.meta())
        });
        Day {
            erasure: self.erasure,
            tier,
            sums,
            sources,
        }
    }

    /// Whether all that was made of a day's profiles, and these themselves, can be read.
    fn is_day_whole(&self, date: &str) -> bool {
        let tenants = read(&self.shared.tenants);
        let mut quarantined = tenants
            .get(self.tenant)
            .into_iter()
            .flat_map(|state| &state.quarantined);
        !quarantined.any(|(meta, _)| meta.date == date && meta.level != Level::Flushed.number())
    }
}
