//! Blocks and heads in one shape.

use std::collections::BTreeSet;
use std::sync::Arc;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_store::Block;
use candela_store::BlockError;
use candela_store::HeadProfile;
use candela_store::HeadView;
use candela_store::ProfileRow;
use candela_store::ProfileTable;
use candela_store::Snapshot;
use candela_store::Tier;
use candela_store::TimeRange;
use hashbrown::HashMap;

use crate::budget::Meter;
use crate::cut_profiles::CutProfiles;
use crate::error::QueryError;
use crate::tiers::Division;
use crate::tiers::FinestTiers;

/// A block or a head with its profiles.
#[derive(Debug)]
pub(crate) struct Source {
    /// The position of its tenant among those of the query: series of two tenants are two, whatever
    /// their labels.
    pub(crate) owner: u32,
    /// For a head, `first_row` is the position of the profile in its list.
    pub(crate) profiles: Arc<ProfileTable>,
    pub(crate) data: SourceData,
    /// Names of the labels that single samples have.
    pub(crate) sample_labels: Vec<String>,
    /// Of which profiles only a part is in the range.
    pub(crate) cut: CutProfiles,
}

#[derive(Debug)]
pub(crate) enum SourceData {
    Block(Arc<Block>),
    Head(HeadView),
}

impl Source {
    /// How fine its times are.
    pub(crate) fn tier(&self) -> Tier {
        match &self.data {
            SourceData::Block(block) => block.meta().tier(),
            SourceData::Head(_) => Tier::Raw,
        }
    }

    /// Whether it may be known of samples when they were taken.
    pub(crate) fn has_times(&self) -> Result<bool, BlockError> {
        match &self.data {
            SourceData::Block(_) if self.tier() != Tier::Raw => Ok(false),
            SourceData::Block(block) => block.has_times(),
            SourceData::Head(view) => {
                let mut profiles = view.profiles.iter();
                Ok(profiles.any(|profile| profile.details.is_some()))
            }
        }
    }

    /// The UTC day of sums, `YYYY-MM-DD`; `None` where the profiles themselves are.
    pub(crate) fn day_of_sums(&self) -> Option<&str> {
        match &self.data {
            SourceData::Block(block) if self.tier() != Tier::Raw => Some(&block.meta().date),
            _ => None,
        }
    }
}

/// The sources of a snapshot of one tenant, and the blocks that could not be read. No sums coarser than
/// `coarsest` answer where something finer can.
pub(crate) fn sources(
    snapshot: Snapshot,
    owner: u32,
    range: TimeRange,
    coarsest: Tier,
    finest: &FinestTiers<'_>,
    meter: &Meter,
) -> Result<(Vec<Source>, Vec<BlockError>), QueryError> {
    let mut sources = Vec::new();
    let mut failed = Vec::new();
    let mut blocks = snapshot.blocks;
    blocks.extend(snapshot.rollups);
    let division = Division::new(range, coarsest, &blocks, finest);
    for block in &blocks {
        if !division.may_take(block.meta()) {
            continue;
        }
        meter.check_time()?;
        match block.profiles() {
            Ok(profiles) => {
                let profiles = division.rows_taken(block.meta(), profiles);
                meter.allocate(profiles.bytes())?;
                sources.push(Source {
                    owner,
                    profiles,
                    sample_labels: block.meta().sample_labels.clone(),
                    cut: CutProfiles::default(),
                    data: SourceData::Block(Arc::clone(block)),
                });
            }
            Err(error) => failed.push(error),
        }
    }
    for view in snapshot.heads {
        let profiles = head_table(&view.profiles);
        meter.allocate(profiles.bytes())?;
        sources.push(Source {
            owner,
            profiles: Arc::new(profiles),
            sample_labels: head_sample_labels(&view),
            cut: CutProfiles::default(),
            data: SourceData::Head(view),
        });
    }
    Ok((sources, failed))
}

/// The head's tables may know more sets than the profiles in the range have, which costs a query
/// that asks for them a look at each sample and nothing else.
fn head_sample_labels(view: &HeadView) -> Vec<String> {
    let tables = view.tables();
    let labels = tables.label_sets().iter().flatten();
    let names: BTreeSet<&str> = labels
        .map(|label| tables.locations().text(label.key))
        .collect();
    names.into_iter().map(str::to_owned).collect()
}

fn head_table(profiles: &[Arc<HeadProfile>]) -> ProfileTable {
    let mut table = ProfileTable::default();
    // The head shares equal labels and types, so their addresses tell them apart.
    let mut series: HashMap<*const Labels, u32> = HashMap::new();
    let mut types: HashMap<*const ProfileType, u32> = HashMap::new();
    for (position, profile) in profiles.iter().enumerate() {
        let series = *series
            .entry(Arc::as_ptr(&profile.labels))
            .or_insert_with(|| {
                table.series.push(Arc::clone(&profile.labels));
                table.series.len() as u32 - 1
            });
        let profile_type = *types
            .entry(Arc::as_ptr(&profile.profile_type))
            .or_insert_with(|| {
                table.types.push(Arc::clone(&profile.profile_type));
                table.types.len() as u32 - 1
            });
        table.rows.push(ProfileRow {
            series,
            profile_type,
            start_ns: profile.start_ns,
            duration_ns: profile.duration_ns,
            period: profile.period,
            total: profile.total,
            first_row: position as u64,
            sample_count: profile.len() as u32,
            merged_profiles: profile.merged_profiles,
        });
    }
    table
}
