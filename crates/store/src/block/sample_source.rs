//! Where the samples of a block that is to be written come from.

use std::sync::Arc;

use candela_model::Labels;
use candela_model::Link;
use candela_model::ProfileType;
use hashbrown::HashMap;

use super::profile_list::ProfileFacts;
use super::profile_list::ProfileList;
use super::service_tree::StackEnd;
use crate::head::HeadProfile;

/// A sample under the numbers of the head's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceSample {
    /// The trie node at which its stack ends.
    pub(crate) node: u32,
    pub(crate) value: i64,
    /// 0 when it has no labels.
    pub(crate) label_set: u32,
    /// When it was taken; 0 when unknown.
    pub(crate) time_ns: i64,
    pub(crate) link: Link,
}

/// Hands out samples profile by profile, each once, in the order of a layout's profiles.
pub(crate) trait SampleSource {
    /// Whether any sample belongs to a trace.
    fn has_traces(&self) -> bool;

    /// Puts the samples of the next profile into an empty list.
    ///
    /// # Errors
    /// When they cannot be read; the block is not written then.
    fn next_profile(&mut self, samples: &mut Vec<SourceSample>) -> Result<(), String>;
}

/// Profiles in memory in the order of a block, with what a layout needs of them.
#[derive(Debug)]
pub(crate) struct MemoryContent<'a> {
    pub(crate) profiles: Vec<&'a HeadProfile>,
    pub(crate) list: ProfileList,
    /// For each service where its stacks end.
    pub(crate) ends: Vec<Vec<StackEnd>>,
}

/// The samples of profiles in memory.
#[derive(Debug)]
pub(crate) struct MemorySource<'a> {
    profiles: std::vec::IntoIter<&'a HeadProfile>,
    has_traces: bool,
}

impl<'a> MemoryContent<'a> {
    /// `node_count` is the size of the trie that the profiles refer to.
    pub(crate) fn new(profiles: &[&'a HeadProfile], node_count: usize) -> Self {
        let mut list = ProfileList::default();
        let mut series: HashMap<&Labels, u32> = HashMap::new();
        let mut types: HashMap<&ProfileType, u32> = HashMap::new();
        for &profile in profiles {
            let series = *series.entry(&profile.labels).or_insert_with(|| {
                list.series.push(Arc::clone(&profile.labels));
                list.series.len() as u32 - 1
            });
            let profile_type = *types.entry(&profile.profile_type).or_insert_with(|| {
                list.types.push(Arc::clone(&profile.profile_type));
                list.types.len() as u32 - 1
            });
            list.rows.push(ProfileFacts {
                series,
                profile_type,
                start_ns: profile.start_ns,
                duration_ns: profile.duration_ns,
                period: profile.period,
                total: profile.total,
                sample_count: profile.len() as u32,
                merged_profiles: profile.merged_profiles,
            });
        }
        let order = list.sort();
        let profiles: Vec<&HeadProfile> = order
            .iter()
            .map(|&position| profiles[position as usize])
            .collect();
        let mut counts = vec![0_u32; node_count];
        let mut next = profiles.as_slice();
        let ends = list.by_service().map(|rows| {
            let (of_service, rest) = next.split_at(rows.len());
            next = rest;
            stack_ends(of_service, &mut counts)
        });
        let ends = ends.collect();
        Self {
            profiles,
            list,
            ends,
        }
    }
}

/// Where the stacks of profiles end. `counts` has a zero for each node, before and after.
fn stack_ends(profiles: &[&HeadProfile], counts: &mut [u32]) -> Vec<StackEnd> {
    let mut nodes = Vec::new();
    for &node in profiles.iter().flat_map(|profile| profile.nodes.iter()) {
        let count = &mut counts[node as usize];
        if *count == 0 {
            nodes.push(node);
        }
        *count = count.saturating_add(1);
    }
    let take = |node: u32| StackEnd {
        node,
        samples: std::mem::take(&mut counts[node as usize]),
    };
    nodes.into_iter().map(take).collect()
}

impl<'a> MemorySource<'a> {
    /// The profiles in the order of the layout.
    pub(crate) fn new(profiles: Vec<&'a HeadProfile>) -> Self {
        let mut details = profiles
            .iter()
            .filter_map(|profile| profile.details.as_ref());
        let has_traces = details.any(|details| {
            let mut links = details.links.iter();
            links.any(|link| *link != Link::default())
        });
        Self {
            profiles: profiles.into_iter(),
            has_traces,
        }
    }
}

impl SampleSource for MemorySource<'_> {
    fn has_traces(&self) -> bool {
        self.has_traces
    }

    fn next_profile(&mut self, samples: &mut Vec<SourceSample>) -> Result<(), String> {
        let profile = self.profiles.next();
        let profile = profile.ok_or("the layout has more profiles than there are")?;
        samples.extend((0..profile.len()).map(|index| {
            let (label_set, time_ns, link) = match &profile.details {
                Some(details) => (
                    details.label_sets[index],
                    details.times_ns[index],
                    details.links[index],
                ),
                None => (0, 0, Link::default()),
            };
            SourceSample {
                node: profile.nodes[index],
                value: profile.values[index],
                label_set,
                time_ns,
                link,
            }
        }));
        Ok(())
    }
}
