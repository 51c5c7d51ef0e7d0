//! Blocks and heads in one shape.

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
use hashbrown::HashMap;

/// A block or a head with its profiles.
#[derive(Debug)]
pub(crate) struct Source {
    /// For a head, `first_row` is the position of the profile in its list.
    pub(crate) profiles: Arc<ProfileTable>,
    pub(crate) data: SourceData,
    /// Whether any sample has labels of its own.
    pub(crate) has_sample_labels: bool,
}

#[derive(Debug)]
pub(crate) enum SourceData {
    Block(Arc<Block>),
    Head(HeadView),
}

/// The sources of a snapshot, and the blocks that could not be read.
pub(crate) fn sources(snapshot: Snapshot) -> (Vec<Source>, Vec<BlockError>) {
    let mut sources = Vec::new();
    let mut failed = Vec::new();
    for block in snapshot.blocks {
        match block.profiles() {
            Ok(profiles) => sources.push(Source {
                profiles,
                has_sample_labels: !block.meta().sample_labels.is_empty(),
                data: SourceData::Block(block),
            }),
            Err(error) => failed.push(error),
        }
    }
    for view in snapshot.heads {
        sources.push(Source {
            profiles: Arc::new(head_table(&view.profiles)),
            has_sample_labels: view.profiles.iter().any(|profile| has_labels(profile)),
            data: SourceData::Head(view),
        });
    }
    (sources, failed)
}

fn has_labels(profile: &HeadProfile) -> bool {
    let details = profile.details.as_ref();
    details.is_some_and(|details| details.label_sets.iter().any(|&set| set != 0))
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
        });
    }
    table
}
