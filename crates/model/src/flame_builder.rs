//! Building a flame tree from stacks or from other trees.

use std::convert::Infallible;
use std::sync::Arc;

use hashbrown::HashTable;

use crate::flame_tree::FlameTree;
use crate::flame_tree::FrameId;
use crate::flame_tree::FrameTable;
use crate::ids::LocationId;
use crate::interner::HashSeed;
use crate::profile::Profile;

/// A node of a tree under construction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeId(pub u32);

/// A trie of frames that takes values in any order.
#[derive(Clone, Debug)]
pub struct FlameTreeBuilder {
    /// The frames of the tree.
    pub frames: FrameTable,
    parent: Vec<u32>,
    frame: Vec<FrameId>,
    self_value: Vec<i64>,
    children: HashTable<u32>,
    seed: HashSeed,
}

/// The deepest node kept: depths are 16-bit. Readers cap stacks far below.
const MAX_DEPTH: usize = u16::MAX as usize - 1;

impl Default for FlameTreeBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl FlameTreeBuilder {
    /// The root's node.
    pub const ROOT: NodeId = NodeId(0);

    /// A builder with nothing but the root.
    #[must_use]
    pub fn new() -> Self {
        Self {
            frames: FrameTable::default(),
            parent: vec![0],
            frame: vec![FrameTable::ROOT],
            self_value: vec![0],
            children: HashTable::new(),
            seed: HashSeed::default(),
        }
    }

    /// The child of `parent` for `frame`, which is made when it is new. A parent is always older
    /// than its children.
    #[inline]
    pub fn child(&mut self, parent: NodeId, frame: FrameId) -> NodeId {
        let (parents, frames) = (&self.parent, &self.frame);
        let seed = self.seed;
        let hash = child_hash(seed, parent.0, frame);
        let entry = self.children.entry(
            hash,
            |&node| parents[node as usize] == parent.0 && frames[node as usize] == frame,
            |&node| child_hash(seed, parents[node as usize], frames[node as usize]),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(entry) => NodeId(*entry.get()),
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let node = u32::try_from(parents.len()).expect("a tree has fewer than 2^32 nodes");
                entry.insert(node);
                self.parent.push(parent.0);
                self.frame.push(frame);
                self.self_value.push(0);
                NodeId(node)
            }
        }
    }

    /// Adds a value to the stacks that end at `node`.
    #[inline]
    pub fn add(&mut self, node: NodeId, value: i64) {
        let slot = &mut self.self_value[node.0 as usize];
        *slot = slot.saturating_add(value);
    }

    /// Adds a stack given as frames, root first.
    pub fn add_stack(&mut self, root_first: impl IntoIterator<Item = FrameId>, value: i64) {
        let mut node = Self::ROOT;
        for frame in root_first.into_iter().take(MAX_DEPTH) {
            node = self.child(node, frame);
        }
        self.add(node, value);
    }

    /// Adds all samples of the series at `position` of a profile, inlined functions as frames of
    /// their own.
    pub fn add_series(&mut self, profile: &Profile, position: usize) {
        match self.try_add_series(profile, position, |_| Ok::<(), Infallible>(())) {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// The same for profiles of strangers: `check` is asked after each sample, with the number of
    /// nodes so far, whether to go on.
    ///
    /// # Errors
    /// That of `check`; what was added until then is in the tree.
    pub fn try_add_series<E>(
        &mut self,
        profile: &Profile,
        position: usize,
        mut check: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut frames_of_location: Vec<Vec<FrameId>> =
            vec![Vec::new(); profile.symbols.locations().len()];
        for sample in &profile.series[position].samples {
            let mut node = Self::ROOT;
            let mut depth = 0;
            for &location in profile.stacks.get(sample.stack).iter().rev() {
                let frames = &mut frames_of_location[location.index()];
                // A location has at least one frame, so an empty list is one not made yet.
                if frames.is_empty() {
                    *frames = location_frames(&mut self.frames, profile, location);
                }
                for &frame in frames.iter().take(MAX_DEPTH - depth) {
                    node = self.child(node, frame);
                    depth += 1;
                }
            }
            self.add(node, sample.value);
            check(self.len())?;
        }
        Ok(())
    }

    /// From a node up to the root, which is left out: nodes and their frames.
    pub(crate) fn path_up(&self, node: NodeId) -> impl Iterator<Item = (NodeId, FrameId)> {
        let path = std::iter::successors(Some(node), |node| {
            Some(NodeId(self.parent[node.0 as usize]))
        });
        path.take_while(|node| *node != Self::ROOT)
            .map(|node| (node, self.frame[node.0 as usize]))
    }

    /// All nodes but the root, parents first: the position of the parent, and the frame.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (usize, FrameId)> + '_ {
        let nodes = self.parent.iter().zip(&self.frame).skip(1);
        nodes.map(|(&parent, &frame)| (parent as usize, frame))
    }

    /// Number of nodes so far, the root included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frame.len()
    }

    /// Whether there is only the root.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }

    /// The finished tree. Nodes without any value are left out: a frame of which nothing was
    /// sampled is no answer to any question.
    #[must_use]
    pub fn finish(self) -> FlameTree {
        let count = self.frame.len();
        let mut total = self.self_value.clone();
        let mut is_used: Vec<bool> = self.self_value.iter().map(|&value| value != 0).collect();
        // Children are younger than their parents, so one pass from the youngest sums everything.
        for node in (1..count).rev() {
            let parent = self.parent[node] as usize;
            total[parent] = total[parent].saturating_add(total[node]);
            is_used[parent] |= is_used[node];
        }
        let children = self.children_by_weight(&total, &is_used);
        let mut tree = FlameTree {
            frames: Arc::new(self.frames),
            ..FlameTree::default()
        };
        let mut pending: Vec<(u32, u16)> = vec![(0, 0)];
        while let Some((node, depth)) = pending.pop() {
            let index = node as usize;
            tree.push_node(
                self.frame[index],
                depth,
                total[index],
                self.self_value[index],
            );
            let below = children.of(index).iter().rev();
            pending.extend(below.map(|&child| (child, depth + 1)));
        }
        tree.compute_subtree_ends();
        tree
    }

    /// Used children of every node in one allocation, heaviest first, equal ones by name.
    fn children_by_weight(&self, total: &[i64], is_used: &[bool]) -> ChildLists {
        let mut starts = vec![0_u32; self.frame.len() + 1];
        for node in 1..self.frame.len() {
            if is_used[node] {
                starts[self.parent[node] as usize + 1] += 1;
            }
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut next = starts.clone();
        let mut nodes = vec![0_u32; starts[self.frame.len()] as usize];
        for node in 1..self.frame.len() {
            if !is_used[node] {
                continue;
            }
            let slot = &mut next[self.parent[node] as usize];
            nodes[*slot as usize] = node as u32;
            *slot += 1;
        }
        for parent in 0..self.frame.len() {
            let range = starts[parent] as usize..starts[parent + 1] as usize;
            nodes[range].sort_unstable_by(|&left, &right| {
                let (left, right) = (left as usize, right as usize);
                let by_weight = total[right].unsigned_abs().cmp(&total[left].unsigned_abs());
                by_weight.then_with(|| {
                    let name = |node: usize| self.frames.name(self.frame[node]);
                    name(left).cmp(name(right)).then(left.cmp(&right))
                })
            });
        }
        ChildLists { starts, nodes }
    }
}

struct ChildLists {
    starts: Vec<u32>,
    nodes: Vec<u32>,
}

impl ChildLists {
    fn of(&self, node: usize) -> &[u32] {
        &self.nodes[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}

#[inline]
fn child_hash(seed: HashSeed, parent: u32, frame: FrameId) -> u64 {
    seed.hash_words([u64::from(parent) << 32 | u64::from(frame.0)])
}

/// The frames of a location, outermost first; one named by its address when it has no lines.
pub(crate) fn location_frames(
    frames: &mut FrameTable,
    profile: &Profile,
    location: LocationId,
) -> Vec<FrameId> {
    let symbols = &profile.symbols;
    let kind = symbols.location(location).kind;
    let mapping = symbols
        .strings
        .get(symbols.mapping(symbols.location(location).mapping).file);
    let lines = symbols.lines(location);
    if lines.is_empty() {
        let name = symbols.address_name(location);
        return vec![frames.intern(&name, "", mapping, kind, 0)];
    }
    lines
        .iter()
        .rev()
        .map(|line| {
            let function = symbols.function(line.function);
            frames.intern(
                symbols.strings.get(function.name),
                symbols.strings.get(function.file),
                mapping,
                kind,
                function.start_line,
            )
        })
        .collect()
}
