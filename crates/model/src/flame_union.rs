//! The union of two flame trees, made in pre-order: beside the result there are only nodes that wait for their place in it.

use std::cmp::Reverse;

use crate::flame_diff::FlameDiff;
use crate::flame_diff::NodeValue;
use crate::flame_diff::Side;
use crate::flame_diff::UnionTooLarge;
use crate::flame_tree::FlameTree;
use crate::flame_tree::FrameId;
use crate::flame_tree::FrameTable;
use crate::flame_tree::subtree_ends;

/// Bytes that a node takes before it has its place, with one source.
const WAITING_NODE_BYTES: usize =
    size_of::<Node>() + size_of::<Source>() + size_of::<(Source, u32)>();

/// Stands for no further source.
const NONE: u32 = u32::MAX;

/// A node of one of the trees.
#[derive(Clone, Copy, Debug)]
struct Source {
    side: Side,
    node: u32,
}

/// A node of the union, before it has its place.
#[derive(Clone, Copy, Debug)]
struct Node {
    frame: FrameId,
    depth: u16,
    before: NodeValue,
    after: NodeValue,
    /// How many nodes of the trees it stands for: more than two where a tree has the same frame twice below one node.
    sources: u32,
    first_source: u32,
    last_source: u32,
}

struct Union<'a> {
    trees: [&'a FlameTree; 2],
    frames: FrameTable,
    /// By tree and its frame, the frame here.
    copies: [Vec<Option<FrameId>>; 2],
    /// Nodes to come, the next one last, and the sources of all of them in the same order.
    pending: Vec<Node>,
    sources: Vec<Source>,
    /// The children of the node at hand, and their sources, each with the next one of the same child.
    children: Vec<Node>,
    of_children: Vec<(Source, u32)>,
    /// By frame the child that has it, if the number beside is that of the node at hand.
    child_of_frame: Vec<(usize, u32)>,
}

impl FlameDiff {
    /// The union of two trees, of at most `max_nodes` nodes (0: all): the heaviest in either stay,
    /// what is cut from a node moves into one child named `other`, which comes on top of the count.
    #[must_use]
    pub fn new(before: &FlameTree, after: &FlameTree, max_nodes: usize) -> Self {
        Self::within(before, after, max_nodes, usize::MAX).expect("nothing has as many bytes")
    }

    /// The same, if the union takes at most so many bytes before it is cut, not counting its frames.
    ///
    /// # Errors
    /// When it takes more.
    pub fn within(
        before: &FlameTree,
        after: &FlameTree,
        max_nodes: usize,
        most_bytes: usize,
    ) -> Result<Self, UnionTooLarge> {
        let union = union(before, after, most_bytes)?;
        Ok(union.pruned(max_nodes))
    }
}

/// All nodes of both trees; children by the sum of both totals, the heaviest first.
///
/// # Errors
/// When it takes more than `most_bytes`.
fn union(
    before: &FlameTree,
    after: &FlameTree,
    most_bytes: usize,
) -> Result<FlameDiff, UnionTooLarge> {
    let mut union = Union::new([before, after]);
    let mut diff = FlameDiff::default();
    while let Some(node) = union.pending.pop() {
        diff.push(node.frame, node.depth, node.before, node.after);
        union.find_children(&node, diff.len());
        let waiting = union.pending.len() + union.children.len();
        if diff.len() * FlameDiff::NODE_BYTES + waiting * WAITING_NODE_BYTES > most_bytes {
            return Err(UnionTooLarge);
        }
        union.queue_children();
    }
    diff.frames = union.frames;
    diff.subtree_end = subtree_ends(&diff.depth);
    Ok(diff)
}

impl<'a> Union<'a> {
    fn new(trees: [&'a FlameTree; 2]) -> Self {
        let mut union = Self {
            copies: trees.map(|tree| vec![None; tree.frames.frames().len()]),
            trees,
            frames: FrameTable::default(),
            pending: Vec::new(),
            sources: Vec::new(),
            children: Vec::new(),
            of_children: Vec::new(),
            child_of_frame: Vec::new(),
        };
        let mut root = Node::new(FrameTable::ROOT, 0);
        for side in [Side::Before, Side::After] {
            if !trees[side as usize].frame.is_empty() {
                let source = Source { side, node: 0 };
                root.add(source, trees[side as usize]);
                union.sources.push(source);
            }
        }
        union.pending.push(root);
        union
    }

    /// Finds the children of a node, whose sources are the last ones, in the order in which its sources have them.
    fn find_children(&mut self, parent: &Node, number: usize) {
        self.children.clear();
        self.of_children.clear();
        let begin = self.sources.len() - parent.sources as usize;
        for position in begin..self.sources.len() {
            let Source { side, node } = self.sources[position];
            let tree = self.trees[side as usize];
            for child in tree.children(node as usize) {
                let frame = self.copy(side, tree.frame[child]);
                let source = Source {
                    side,
                    node: child as u32,
                };
                self.add_to_child(frame, parent.depth.saturating_add(1), number, source);
            }
        }
        self.sources.truncate(begin);
    }

    /// The frame here that one of a tree is.
    fn copy(&mut self, side: Side, frame: FrameId) -> FrameId {
        let copies = &mut self.copies[side as usize];
        *copies[frame.index()].get_or_insert_with(|| {
            let table = &self.trees[side as usize].frames;
            self.frames.intern_from(table, frame)
        })
    }

    fn add_to_child(&mut self, frame: FrameId, depth: u16, number: usize, source: Source) {
        if self.child_of_frame.len() <= frame.index() {
            self.child_of_frame.resize(frame.index() + 1, (0, 0));
        }
        let known = &mut self.child_of_frame[frame.index()];
        if known.0 != number {
            *known = (number, self.children.len() as u32);
            self.children.push(Node::new(frame, depth));
        }
        let child = &mut self.children[known.1 as usize];
        child.add(source, self.trees[source.side as usize]);
        let position = self.of_children.len() as u32;
        match self.of_children.get_mut(child.last_source as usize) {
            Some((_, next)) => *next = position,
            None => child.first_source = position,
        }
        child.last_source = position;
        self.of_children.push((source, NONE));
    }

    /// Of two that weigh the same the one that was found first comes first.
    fn queue_children(&mut self) {
        self.children.sort_by_key(|child| Reverse(child.sum()));
        for child in self.children.iter().rev() {
            self.pending.push(*child);
            let mut next = child.first_source;
            while let Some(&(source, following)) = self.of_children.get(next as usize) {
                self.sources.push(source);
                next = following;
            }
        }
    }
}

impl Node {
    fn new(frame: FrameId, depth: u16) -> Self {
        Self {
            frame,
            depth,
            before: NodeValue::default(),
            after: NodeValue::default(),
            sources: 0,
            first_source: NONE,
            last_source: NONE,
        }
    }

    fn add(&mut self, source: Source, tree: &FlameTree) {
        let value = NodeValue {
            total: tree.total[source.node as usize],
            self_value: tree.self_value[source.node as usize],
        };
        match source.side {
            Side::Before => self.before.add(value),
            Side::After => self.after.add(value),
        }
        self.sources += 1;
    }

    fn sum(&self) -> u64 {
        let before = self.before.total.unsigned_abs();
        before.saturating_add(self.after.total.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::flame_builder::FlameTreeBuilder;
    use crate::frame_kind::FrameKind;

    /// Name, depth and values of each node, and how many were cut.
    type Nodes = (Vec<(String, u16, NodeValue, NodeValue)>, usize);

    /// The same by another way: nodes by their paths in a map, and all that a node has in lists.
    struct Reference {
        nodes: Vec<(String, [NodeValue; 2], Vec<usize>)>,
    }

    impl Reference {
        fn of(trees: [&FlameTree; 2]) -> Self {
            let root = ("total".to_owned(), [NodeValue::default(); 2], Vec::new());
            let mut reference = Self { nodes: vec![root] };
            let mut known: HashMap<(usize, String), usize> = HashMap::new();
            for (side, tree) in trees.into_iter().enumerate() {
                let mut path: Vec<usize> = Vec::new();
                for node in 0..tree.len() {
                    path.truncate(tree.depth[node].into());
                    let name = tree.frames.name(tree.frame[node]).to_owned();
                    let target = path.last().map_or(0, |&parent| {
                        *known.entry((parent, name.clone())).or_insert_with(|| {
                            let new = reference.nodes.len();
                            let values = [NodeValue::default(); 2];
                            reference.nodes.push((name, values, Vec::new()));
                            reference.nodes[parent].2.push(new);
                            new
                        })
                    });
                    path.push(target);
                    reference.nodes[target].1[side].add(NodeValue {
                        total: tree.total[node],
                        self_value: tree.self_value[node],
                    });
                }
            }
            reference
        }

        fn magnitude(&self, node: usize) -> u64 {
            let [before, after] = self.nodes[node].1.map(|value| value.total.unsigned_abs());
            before.max(after)
        }

        fn count(&self, node: usize) -> usize {
            let children = self.nodes[node].2.iter();
            1 + children.map(|&child| self.count(child)).sum::<usize>()
        }

        fn pruned(&self, max_nodes: usize) -> Nodes {
            let mut magnitudes: Vec<u64> = (1..self.nodes.len())
                .map(|node| self.magnitude(node))
                .collect();
            magnitudes.sort_by_key(|&magnitude| Reverse(magnitude));
            let keeps_all = max_nodes == 0 || self.nodes.len() <= max_nodes;
            let least = match keeps_all {
                true => 0,
                false => magnitudes[(max_nodes - 1).min(magnitudes.len() - 1)] + 1,
            };
            let mut nodes = (Vec::new(), 0);
            self.write(0, 0, least, &mut nodes);
            nodes
        }

        fn write(&self, node: usize, depth: u16, least: u64, nodes: &mut Nodes) {
            let (name, [before, after], children) = &self.nodes[node];
            nodes.0.push((name.clone(), depth, *before, *after));
            let (mut kept, cut): (Vec<usize>, Vec<usize>) = children
                .iter()
                .partition(|&&child| self.magnitude(child) >= least);
            kept.sort_by_key(|&child| {
                let [before, after] = self.nodes[child].1.map(|value| value.total.unsigned_abs());
                Reverse(before + after)
            });
            for child in kept {
                self.write(child, depth + 1, least, nodes);
            }
            if cut.is_empty() {
                return;
            }
            let mut rest = [NodeValue::default(); 2];
            for child in cut {
                for (sum, value) in rest.iter_mut().zip(self.nodes[child].1) {
                    sum.add(NodeValue {
                        self_value: value.total,
                        ..value
                    });
                }
                nodes.1 += self.count(child);
            }
            let [before, after] = rest;
            nodes.0.push(("other".to_owned(), depth + 1, before, after));
        }
    }

    /// A tree of stacks of up to five of five names, of which those that are called like what is cut are so, too.
    fn random_tree(random: &mut impl FnMut(u64) -> u64) -> FlameTree {
        let mut builder = FlameTreeBuilder::new();
        for _ in 0..random(60) {
            let depth = random(6);
            let frames: Vec<FrameId> = (0..depth)
                .map(|_| {
                    let name = ["a", "b", "c", "d", "other"][random(5) as usize];
                    builder.frames.intern(name, "", "", FrameKind::Other, 0)
                })
                .collect();
            builder.add_stack(frames, random(9) as i64 - 2);
        }
        builder.finish().pruned(random(30) as usize)
    }

    #[test]
    fn it_is_the_same_as_by_a_map_of_paths() {
        let mut state = 7_u64;
        let mut random = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let [before, after] = [0, 1].map(|_| random_tree(&mut random));
            let reference = Reference::of([&before, &after]);
            for max_nodes in [0, 1, 2, 3, 8, 20] {
                let diff = FlameDiff::new(&before, &after, max_nodes);
                let nodes = (0..diff.len()).map(|node| {
                    let name = diff.frames.name(diff.frame[node]).to_owned();
                    (name, diff.depth[node], diff.before[node], diff.after[node])
                });
                let nodes: Nodes = (nodes.collect(), diff.pruned_nodes);
                assert_eq!(nodes, reference.pruned(max_nodes), "of {max_nodes}");
            }
        }
    }

    #[test]
    fn a_union_may_take_so_many_bytes_and_no_more() {
        let mut builder = FlameTreeBuilder::new();
        for name in ["a", "b", "c"] {
            let frame = builder.frames.intern(name, "", "", FrameKind::Go, 0);
            builder.add_stack([frame], 1);
        }
        let tree = builder.finish();
        let of = |most_bytes| union(&tree, &tree, most_bytes).map(|diff| diff.len());
        // When the root has its place three others wait for theirs.
        let most = FlameDiff::NODE_BYTES + 3 * WAITING_NODE_BYTES;
        assert_eq!(of(most), Ok(4));
        assert_eq!(of(most - 1), Err(UnionTooLarge));
    }
}
