//! A profile of the head.

use std::sync::Arc;

use candela_model::Labels;
use candela_model::Link;
use candela_model::ProfileType;

/// The samples of one series and window, columns of equal length, sorted by node. Samples that
/// are equal in everything but the value are added up, and zeros are left out.
#[derive(Debug)]
pub struct HeadProfile {
    /// The series' labels, shared by all its profiles in the head.
    pub labels: Arc<Labels>,
    /// What the values are, shared likewise.
    pub profile_type: Arc<ProfileType>,
    /// Start of the window, nanoseconds since the Unix epoch.
    pub start_ns: i64,
    /// Length of the window, nanoseconds.
    pub duration_ns: i64,
    /// Distance between samples in the unit of the period; 0 when unknown.
    pub period: i64,
    /// How many profiles were added up into it: 1, or more in a rollup.
    pub merged_profiles: u32,
    /// Sum of the values.
    pub total: i64,
    /// The stack of each sample: the node of the head's trie at which it ends.
    pub nodes: Box<[u32]>,
    /// The value of each sample.
    pub values: Box<[i64]>,
    /// What few profiles have, or `None`.
    pub details: Option<Box<SampleDetails>>,
}

/// Per-sample columns beside stack and value.
#[derive(Debug, Default)]
pub struct SampleDetails {
    /// The sample's label set in the head's tables; 0 is the empty one.
    pub label_sets: Box<[u32]>,
    /// When each sample was taken, nanoseconds since the Unix epoch; 0 when unknown.
    pub times_ns: Box<[i64]>,
    /// The trace that each sample belongs to; all zeros when none.
    pub links: Box<[Link]>,
}

impl HeadProfile {
    /// Number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The label set of the sample at `position`.
    #[inline]
    #[must_use]
    pub fn label_set(&self, position: usize) -> u32 {
        self.details
            .as_ref()
            .map_or(0, |details| details.label_sets[position])
    }

    /// The trace and the span of the sample at `position`; all zeros when none.
    #[inline]
    #[must_use]
    pub fn link(&self, position: usize) -> Link {
        self.details
            .as_ref()
            .map_or_else(Link::default, |details| details.links[position])
    }

    /// When the sample at `position` was taken; 0 when unknown.
    #[inline]
    #[must_use]
    pub fn time_ns(&self, position: usize) -> i64 {
        self.details
            .as_ref()
            .map_or(0, |details| details.times_ns[position])
    }

    /// Estimated bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let per_sample = if self.details.is_some() { 12 + 36 } else { 12 };
        size_of::<Self>() + 16 + self.len() * per_sample
    }
}
