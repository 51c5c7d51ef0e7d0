//! The profiles of several blocks under common numbers: what a merged block is written from.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::ops::Range;
use std::sync::Arc;

use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;
use hashbrown::HashMap;

use super::plan::Part;
use crate::block::Block;
use crate::block::ProfileFacts;
use crate::block::ProfileList;
use crate::block::ProfileRow;
use crate::block::ProfileTable;
use crate::block::SampleColumns;
use crate::block::StackEnd;
use crate::error::BlockError;
use crate::head::HeadTables;

/// No sample of the part has the stack.
pub(super) const NO_NODE: u32 = u32::MAX;

/// Which profiles are wanted beside those of the part's services.
pub(crate) type Keep<'a> = dyn Fn(&Labels, &ProfileType, &ProfileRow) -> bool + 'a;

/// Everything about a part but its samples, which are read again when they are written: there may
/// be more than fit in memory.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) tables: HeadTables,
    pub(super) list: ProfileList,
    /// For each service of the list where its stacks end.
    pub(super) ends: Vec<Vec<StackEnd>>,
    /// For each profile of the list where its samples are.
    pub(super) origins: Vec<Origin>,
    pub(super) inputs: Vec<Input>,
}

/// Where the samples of a profile are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// Position in [`Merged::inputs`].
    pub(super) input: u32,
    pub(super) first_row: u64,
}

/// A block that is merged.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) block: Arc<Block>,
    /// The rows of its samples that are wanted, in ascending order.
    pub(super) ranges: Vec<Range<u64>>,
    /// The common number of each of its label sets; 0 where no sample has it.
    pub(super) label_sets: Vec<u32>,
    /// The node of the common trie at which each of its stacks ends.
    pub(super) node_of_stack: Vec<u32>,
}

/// What is known while blocks are taken up one by one.
#[derive(Default)]
struct Merging {
    tables: HeadTables,
    list: ProfileList,
    series: HashMap<Arc<Labels>, u32>,
    types: HashMap<Arc<ProfileType>, u32>,
    origins: Vec<Origin>,
    ends: BTreeMap<String, HashMap<u32, u32>>,
}

impl Merged {
    /// Reads profiles and stacks of the blocks, one block at a time.
    pub(super) fn read(
        blocks: &[Arc<Block>],
        part: &Part,
        keep: &Keep<'_>,
    ) -> Result<Self, BlockError> {
        let mut merging = Merging::default();
        let mut inputs = Vec::new();
        for block in blocks {
            let profiles = block.profiles()?;
            let wanted = wanted_rows(&profiles, part, keep);
            if wanted.is_empty() {
                continue;
            }
            inputs.push(merging.take(inputs.len() as u32, block, &profiles, &wanted)?);
        }
        let mut list = merging.list;
        let order = list.sort();
        let origins = order
            .iter()
            .map(|&position| merging.origins[position as usize]);
        let origins = origins.collect();
        let ends = merging.ends.into_values().map(sorted_ends).collect();
        Ok(Self {
            tables: merging.tables,
            list,
            ends,
            origins,
            inputs,
        })
    }
}

impl Merging {
    fn take(
        &mut self,
        input: u32,
        block: &Arc<Block>,
        profiles: &ProfileTable,
        wanted: &[ProfileRow],
    ) -> Result<Input, BlockError> {
        for row in wanted {
            let facts = self.facts(profiles, row);
            self.list.rows.push(facts);
            self.origins.push(Origin {
                input,
                first_row: row.first_row,
            });
        }
        let label_sets = self.label_sets(block)?;
        let mut node_of_stack = Vec::new();
        let service = |row: &ProfileRow| service_of(&profiles.series[row.series as usize]);
        // Stacks belong to one service, so what one of them reads no other one does.
        for of_service in wanted.chunk_by(|left, right| service(left) == service(right)) {
            let counts = stack_counts(block, &row_ranges(of_service))?;
            self.add_stacks(block, &counts, &mut node_of_stack)?;
            let ends = self.ends.entry(service(&of_service[0]).to_owned());
            let ends = ends.or_default();
            for (stack, &samples) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                let end: &mut u32 = ends.entry(node_of_stack[stack]).or_default();
                *end = end.saturating_add(samples);
            }
        }
        Ok(Input {
            block: Arc::clone(block),
            ranges: row_ranges(wanted),
            label_sets,
            node_of_stack,
        })
    }

    fn facts(&mut self, profiles: &ProfileTable, row: &ProfileRow) -> ProfileFacts {
        let labels = &profiles.series[row.series as usize];
        let profile_type = &profiles.types[row.profile_type as usize];
        ProfileFacts {
            series: number(&mut self.series, &mut self.list.series, labels),
            profile_type: number(&mut self.types, &mut self.list.types, profile_type),
            start_ns: row.start_ns,
            duration_ns: row.duration_ns,
            period: row.period,
            total: row.total,
            sample_count: row.sample_count,
            merged_profiles: row.merged_profiles,
        }
    }

    /// All sets of a block, be they of samples or of series: there are few, and telling them apart
    /// would take a pass over the samples.
    fn label_sets(&mut self, block: &Block) -> Result<Vec<u32>, BlockError> {
        if block.meta().sample_labels.is_empty() {
            return Ok(Vec::new());
        }
        let labels = block.labels()?;
        let sets = labels.sets.iter();
        let tables = &mut self.tables;
        Ok(sets
            .map(|set| tables.intern_label_set(&labels.strings, set))
            .collect())
    }

    /// The common nodes of the stacks that occur.
    fn add_stacks(
        &mut self,
        block: &Block,
        counts: &[u32],
        node_of_stack: &mut Vec<u32>,
    ) -> Result<(), BlockError> {
        let (stacks, locations) = (block.stacks()?, block.locations()?);
        if node_of_stack.len() < counts.len() {
            node_of_stack.resize(counts.len(), NO_NODE);
        }
        let mut is_needed = vec![false; stacks.parents.len()];
        for (stack, _) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let mut node = stacks.node_of_stack[stack] as usize;
            while !is_needed[node] {
                is_needed[node] = true;
                node = stacks.parents[node] as usize;
            }
        }
        let mut common = vec![0_u32; stacks.parents.len()];
        let mut common_location = vec![u32::MAX; locations.len()];
        for node in (0..common.len()).filter(|&node| is_needed[node]) {
            let parent = stacks.parents[node] as usize;
            if parent == node {
                continue;
            }
            let location = stacks.locations[node] as usize;
            if common_location[location] == u32::MAX {
                let number = self.tables.intern_location(&locations, location as u32);
                common_location[location] = number;
            }
            common[node] = self.tables.child(common[parent], common_location[location]);
        }
        for (stack, _) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            node_of_stack[stack] = common[stacks.node_of_stack[stack] as usize];
        }
        Ok(())
    }
}

fn wanted_rows(profiles: &ProfileTable, part: &Part, keep: &Keep<'_>) -> Vec<ProfileRow> {
    let rows = profiles.rows.iter();
    let is_wanted = |row: &&ProfileRow| {
        let labels = &profiles.series[row.series as usize];
        part.has(service_of(labels), row.start_ns)
            && keep(labels, &profiles.types[row.profile_type as usize], row)
    };
    rows.filter(is_wanted).copied().collect()
}

fn service_of(labels: &Labels) -> &str {
    labels.get(SERVICE_NAME_LABEL).unwrap_or("")
}

/// The rows of profiles, neighbours joined.
pub(super) fn row_ranges(profiles: &[ProfileRow]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for row in profiles.iter().filter(|row| row.sample_count > 0) {
        let end = row.first_row + u64::from(row.sample_count);
        match ranges.last_mut() {
            Some(last) if last.end == row.first_row => last.end = end,
            _ => ranges.push(row.first_row..end),
        }
    }
    ranges
}

/// How many samples of the rows end at each stack. Every one of them ends at a stack of the block.
pub(crate) fn stack_counts(block: &Block, ranges: &[Range<u64>]) -> Result<Vec<u32>, BlockError> {
    let mut counts = vec![0_u32; block.stacks()?.node_of_stack.len()];
    let mut wild = None;
    block.scan_samples(ranges, SampleColumns::default(), &mut |chunk| {
        for &stack in chunk.stack_ids {
            let Some(count) = counts.get_mut(stack as usize) else {
                wild = Some(stack);
                return ControlFlow::Break(());
            };
            *count = count.saturating_add(1);
        }
        ControlFlow::Continue(())
    })?;
    match wild {
        Some(stack) => Err(block.damaged(format!("a sample has stack {stack}, which is none"))),
        None => Ok(counts),
    }
}

fn number<T: Eq + std::hash::Hash>(
    known: &mut HashMap<Arc<T>, u32>,
    list: &mut Vec<Arc<T>>,
    value: &Arc<T>,
) -> u32 {
    *known.entry(Arc::clone(value)).or_insert_with(|| {
        list.push(Arc::clone(value));
        list.len() as u32 - 1
    })
}

/// In an order that does not depend on that of a map, so that a job done again writes the same.
fn sorted_ends(ends: HashMap<u32, u32>) -> Vec<StackEnd> {
    let mut ends: Vec<StackEnd> = ends
        .into_iter()
        .map(|(node, samples)| StackEnd { node, samples })
        .collect();
    ends.sort_unstable_by_key(|end| end.node);
    ends
}
