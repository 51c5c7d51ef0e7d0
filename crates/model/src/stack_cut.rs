//! Profiles with fewer or shorter stacks: the heaviest of them, or what a compiler reads.

use hashbrown::HashMap;

use crate::frame_kind::FrameKind;
use crate::ids::LabelSetId;
use crate::ids::LinkId;
use crate::ids::LocationId;
use crate::ids::StackId;
use crate::profile::Profile;
use crate::profile::Sample;
use crate::symbols::Location;

/// What is left of stacks for profile-guided optimization of Go programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PgoOptions {
    /// So many locations of each stack, counted from the leaf; all when 0.
    pub keep_locations: usize,
    /// Whether the line in the leaf does not matter: what a call site calls is then one sample,
    /// wherever in the callee the time went.
    pub aggregate_callees: bool,
}

/// The stacks of a profile as a tree of locations.
struct StackTrie {
    children: HashMap<(u32, LocationId), u32>,
    /// What the samples at and below each node come to. Sums of mixed signs could cancel each other
    /// out, so a node weighs what they are without their signs.
    weights: Vec<u64>,
    parents: Vec<u32>,
}

impl Profile {
    /// Leaves the heaviest `max_nodes` nodes (0: all) of the tree that the stacks of all series
    /// make, counted by location and without the root. What was below one that is cut ends in a
    /// frame `other` in its place, and those frames come on top of the count: no value is lost.
    /// Returns how many nodes were cut.
    pub fn prune_stacks(&mut self, max_nodes: usize) -> usize {
        if max_nodes == 0 {
            return 0;
        }
        let trie = StackTrie::of(self);
        let nodes = trie.weights.len() - 1;
        if nodes <= max_nodes {
            return 0;
        }
        let is_kept = trie.heaviest(max_nodes);
        let function = self.symbols.intern_function("other", "", "", 0);
        let place = Location::new(FrameKind::Other, 0);
        let other = self.symbols.intern_location(&place, &[(function, 0, 0)]);
        self.replace_stacks(|profile, stack| {
            let locations = profile.stacks.get(stack);
            let mut node = StackTrie::ROOT;
            let kept_depth = locations.iter().rev().take_while(|&&location| {
                node = trie.children[&(node, location)];
                is_kept[node as usize]
            });
            let kept_depth = kept_depth.count();
            if kept_depth == locations.len() {
                return stack;
            }
            let kept = &locations[locations.len() - kept_depth..];
            let cut: Vec<LocationId> = [other].into_iter().chain(kept.iter().copied()).collect();
            profile.stacks.intern(&cut)
        });
        nodes - max_nodes
    }

    /// Leaves of stacks what a Go compiler looks at, so that the profile is small. Samples that
    /// this makes equal are added up.
    pub fn reduce_for_pgo(&mut self, options: &PgoOptions) {
        let keep = match options.keep_locations {
            0 => usize::MAX,
            keep => keep,
        };
        self.replace_stacks(|profile, stack| {
            let locations = profile.stacks.get(stack);
            let mut kept = locations[..keep.min(locations.len())].to_vec();
            if options.aggregate_callees
                && let Some(leaf) = kept.first_mut()
            {
                *leaf = profile.without_leaf_line(*leaf);
            }
            profile.stacks.intern(&kept)
        });
    }

    /// A location with the line of its innermost function left out; without symbols its address is
    /// all there is and stays.
    fn without_leaf_line(&mut self, leaf: LocationId) -> LocationId {
        let lines = self.symbols.lines(leaf);
        let mut lines: Vec<_> = lines
            .iter()
            .map(|line| (line.function, line.line, line.column))
            .collect();
        let Some(innermost) = lines.first_mut() else {
            return leaf;
        };
        (innermost.1, innermost.2) = (0, 0);
        let mut place = *self.symbols.location(leaf);
        place.address = 0;
        self.symbols.intern_location(&place, &lines)
    }

    /// Puts another stack in the place of each that samples have, and adds up what is equal then.
    fn replace_stacks(&mut self, mut replaced: impl FnMut(&mut Self, StackId) -> StackId) {
        let mut known: HashMap<StackId, StackId> = HashMap::new();
        let mut all_series = std::mem::take(&mut self.series);
        for series in &mut all_series {
            for sample in &mut series.samples {
                let stack = sample.stack;
                sample.stack = *known.entry(stack).or_insert_with(|| replaced(self, stack));
            }
            add_up_equal(&mut series.samples);
        }
        self.series = all_series;
    }
}

/// Adds up samples that are equal in everything but the value, each in the place of the first.
fn add_up_equal(samples: &mut Vec<Sample>) {
    let mut places: HashMap<(StackId, LabelSetId, LinkId, i64), usize> = HashMap::new();
    let mut added: Vec<Sample> = Vec::with_capacity(samples.len());
    for sample in samples.iter() {
        let key = (sample.stack, sample.label_set, sample.link, sample.time_ns);
        let place = *places.entry(key).or_insert(added.len());
        match added.get_mut(place) {
            Some(known) => known.value = known.value.saturating_add(sample.value),
            None => added.push(*sample),
        }
    }
    *samples = added;
}

impl StackTrie {
    const ROOT: u32 = 0;

    fn of(profile: &Profile) -> Self {
        let mut trie = Self {
            children: HashMap::new(),
            weights: vec![0],
            parents: vec![Self::ROOT],
        };
        let samples = profile.series.iter().flat_map(|series| &series.samples);
        let mut ends: HashMap<StackId, u32> = HashMap::new();
        for sample in samples {
            let end = *ends
                .entry(sample.stack)
                .or_insert_with(|| trie.end_of(profile.stacks.get(sample.stack)));
            let weight = &mut trie.weights[end as usize];
            *weight = weight.saturating_add(sample.value.unsigned_abs());
        }
        // Nodes come behind their parents.
        for node in (1..trie.weights.len()).rev() {
            let parent = trie.parents[node] as usize;
            trie.weights[parent] = trie.weights[parent].saturating_add(trie.weights[node]);
        }
        trie
    }

    fn end_of(&mut self, leaf_first: &[LocationId]) -> u32 {
        let mut node = Self::ROOT;
        for &location in leaf_first.iter().rev() {
            let next =
                u32::try_from(self.weights.len()).expect("tables are limited to 2^32 entries");
            let child = *self.children.entry((node, location)).or_insert(next);
            if child == next {
                self.weights.push(0);
                self.parents.push(node);
            }
            node = child;
        }
        node
    }

    /// Whether each node is one of the heaviest. Of equal ones the first stay, and a parent comes
    /// before its children and is never lighter, so whatever stays is connected.
    fn heaviest(&self, count: usize) -> Vec<bool> {
        let mut ranked: Vec<usize> = (1..self.weights.len()).collect();
        ranked.sort_by_key(|&node| std::cmp::Reverse(self.weights[node]));
        let mut is_kept = vec![false; self.weights.len()];
        for &node in ranked.iter().take(count) {
            is_kept[node] = true;
        }
        is_kept
    }
}
