//! The small tables of a block in memory.

use std::sync::Arc;

use candela_model::LabelSetTable;
use candela_model::Labels;
use candela_model::ProfileType;
use candela_model::StringTable;

/// Sets of labels, of series and of samples alike, by their number.
#[derive(Clone, Debug, Default)]
pub struct LabelTable {
    /// The texts.
    pub strings: StringTable,
    /// The sets; 0 is the empty one.
    pub sets: LabelSetTable,
}

/// Table `profiles`, sorted by service, type, start and series.
#[derive(Clone, Debug, Default)]
pub struct ProfileTable {
    /// The series that occur.
    pub series: Vec<Arc<Labels>>,
    /// The types that occur.
    pub types: Vec<Arc<ProfileType>>,
    /// The profiles.
    pub rows: Vec<ProfileRow>,
}

/// A profile of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileRow {
    /// Position of its labels in [`ProfileTable::series`].
    pub series: u32,
    /// Position of its type in [`ProfileTable::types`].
    pub profile_type: u32,
    /// Start of the window, nanoseconds since the Unix epoch.
    pub start_ns: i64,
    /// Length of the window, nanoseconds.
    pub duration_ns: i64,
    /// Distance between samples in the unit of the period; 0 when unknown.
    pub period: i64,
    /// Sum of the values.
    pub total: i64,
    /// Its first row in table `samples`.
    pub first_row: u64,
    /// Its rows there.
    pub sample_count: u32,
    /// How many profiles were added up into it: 1, or more in a rollup.
    pub merged_profiles: u32,
}

/// Table `stack_nodes`: all stacks of a block, parents before their children.
#[derive(Clone, Debug, Default)]
pub struct StackTree {
    /// The parent of each node; a root's is itself.
    pub parents: Vec<u32>,
    /// The location of each node; that of a root means nothing.
    pub locations: Vec<u32>,
    /// For each stack id the node at which the stack ends.
    pub node_of_stack: Vec<u32>,
}

impl LabelTable {
    pub(crate) fn bytes(&self) -> usize {
        self.strings.text_bytes() + self.strings.len() * 24 + self.sets.len() * 64
    }
}

impl ProfileTable {
    /// Estimated bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows.len() * size_of::<ProfileRow>() + self.series.len() * 400
    }
}

impl StackTree {
    pub(crate) fn bytes(&self) -> usize {
        4 * (self.parents.len() + self.locations.len() + self.node_of_stack.len())
    }
}
