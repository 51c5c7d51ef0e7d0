//! Whether a merged block says the same as those that it was made from.

use std::hash::Hash;
use std::hash::Hasher;
use std::ops::ControlFlow;

use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::SampleLabel;
use candela_model::StringTable;
use twox_hash::XxHash3_64;

use super::merge::Keep;
use super::merge::row_ranges;
use crate::block::Block;
use crate::block::LabelTable;
use crate::block::ProfileRow;
use crate::block::ProfileTable;
use crate::block::SampleColumns;
use crate::block::StackTree;
use crate::error::BlockError;
use crate::locations::LocationRow;
use crate::locations::LocationTable;

/// Of a set of samples the number and the sum of their hashes, over series, type, time, frames,
/// labels and value. It does not depend on order or on the numbers of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checksum {
    pub(crate) samples: u64,
    sum: u64,
}

impl Checksum {
    /// Of both sets together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            samples: self.samples + other.samples,
            sum: self.sum.wrapping_add(other.sum),
        }
    }

    /// Of the samples of a block's wanted profiles.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub(crate) fn of(block: &Block, keep: &Keep<'_>) -> Result<Self, BlockError> {
        let profiles = block.profiles()?;
        let rows = profiles.rows.iter().filter(|row| {
            let labels = &profiles.series[row.series as usize];
            keep(labels, &profiles.types[row.profile_type as usize], row)
        });
        let rows: Vec<ProfileRow> = rows.copied().collect();
        let frames = hashes_of_stacks(&*block.stacks()?, &*block.locations()?);
        let has_sets = !block.meta().sample_labels.is_empty();
        let sets = if has_sets {
            hashes_of_label_sets(&*block.labels()?)
        } else {
            Vec::new()
        };
        let series: Vec<u64> = profiles.series.iter().map(hash_of).collect();
        let mut of_profiles = rows.iter().filter(|row| row.sample_count > 0);
        let mut profile: Option<(u64, u64)> = None;
        let mut checksum = Self::default();
        let mut is_wild = false;
        let columns = SampleColumns {
            label_sets: has_sets,
            ..SampleColumns::default()
        };
        block.scan_samples(&row_ranges(&rows), columns, &mut |chunk| {
            for index in 0..chunk.values.len() {
                let row = chunk.first_row + index as u64;
                while profile.is_none_or(|(end, _)| row >= end) {
                    let next = of_profiles.next().map(|next| {
                        let end = next.first_row + u64::from(next.sample_count);
                        (end, hash_of_profile(&profiles, &series, next))
                    });
                    if next.is_none() {
                        is_wild = true;
                        return ControlFlow::Break(());
                    }
                    profile = next;
                }
                let stack = frames.get(chunk.stack_ids[index] as usize);
                let set = chunk.label_sets.get(index).copied().unwrap_or(0);
                let set = if set == 0 {
                    Some(&0)
                } else {
                    sets.get(set as usize)
                };
                let (Some(stack), Some(set), Some((_, profile))) = (stack, set, profile) else {
                    is_wild = true;
                    return ControlFlow::Break(());
                };
                let hash = hash_of((profile, stack, set, chunk.values[index]));
                checksum.samples += 1;
                checksum.sum = checksum.sum.wrapping_add(hash);
            }
            ControlFlow::Continue(())
        })?;
        if is_wild {
            return Err(block.damaged("its samples refer to what is not there".to_owned()));
        }
        Ok(checksum)
    }
}

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = XxHash3_64::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn hash_of_profile(profiles: &ProfileTable, series: &[u64], row: &ProfileRow) -> u64 {
    let profile_type = &profiles.types[row.profile_type as usize];
    let window = (row.start_ns, row.duration_ns, row.period);
    hash_of((series[row.series as usize], profile_type, window))
}

/// By stack, the hash of its frames.
fn hashes_of_stacks(stacks: &StackTree, locations: &LocationTable) -> Vec<u64> {
    let of_location: Vec<u64> = (0..locations.len())
        .map(|number| hash_of_location(locations, locations.get(number as u32)))
        .collect();
    let mut of_node = vec![0_u64; stacks.parents.len()];
    for (node, &parent) in stacks.parents.iter().enumerate() {
        if parent as usize != node {
            let location = of_location[stacks.locations[node] as usize];
            of_node[node] = hash_of((of_node[parent as usize], location));
        }
    }
    let ends = stacks.node_of_stack.iter();
    ends.map(|&node| of_node[node as usize]).collect()
}

/// Of a line with symbols one address is kept, and which is no part of what it says.
fn hash_of_location(table: &LocationTable, row: &LocationRow) -> u64 {
    let texts = [
        table.text(row.function_name),
        table.text(row.system_name),
        table.text(row.file_name),
        table.text(row.mapping_file),
        table.text(row.build_id),
    ];
    let place = (row.line, row.column, row.start_line, row.is_inlined);
    let address = if row.is_symbolized { 0 } else { row.address };
    hash_of((texts, place, row.kind.as_str(), address))
}

fn hashes_of_label_sets(table: &LabelTable) -> Vec<u64> {
    let strings: &StringTable = &table.strings;
    let sets = (0..table.sets.len()).map(|index| {
        let set = table.sets.get(LabelSetId::from_index(index));
        // Their order is that of a block's numbers.
        let hashes = set.iter().map(|label| hash_of_label(strings, label));
        hashes.fold(1, u64::wrapping_add)
    });
    sets.collect()
}

fn hash_of_label(strings: &StringTable, label: &SampleLabel) -> u64 {
    let key = strings.get(label.key);
    match label.value {
        LabelValue::Text(text) => hash_of((key, strings.get(text))),
        LabelValue::Number { value, unit } => hash_of((key, value, strings.get(unit))),
    }
}
