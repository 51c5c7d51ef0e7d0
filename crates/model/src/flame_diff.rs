//! Two flame trees side by side.

use std::cmp::Reverse;

use hashbrown::HashMap;

use crate::flame_tree::FlameTree;
use crate::flame_tree::FrameId;
use crate::flame_tree::FrameTable;
use crate::flame_tree::subtree_ends;
use crate::frame_kind::FrameKind;

/// The union of two trees. One entry a node in each column, in pre-order, children by the sum of
/// both totals with the heaviest first; node 0 is the root.
#[derive(Clone, Debug, Default)]
pub struct FlameDiff {
    /// The frames that nodes refer to.
    pub frames: FrameTable,
    /// The frame of each node.
    pub frame: Vec<FrameId>,
    /// Distance to the root, which is 0.
    pub depth: Vec<u16>,
    /// Index behind the last node of the node's subtree.
    pub subtree_end: Vec<u32>,
    /// The node in the tree before; zeros where it was not.
    pub before: Vec<NodeValue>,
    /// The node in the tree after; zeros where it is not.
    pub after: Vec<NodeValue>,
    /// How many nodes pruning folded into `other` nodes.
    pub pruned_nodes: usize,
}

/// What a tree says of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeValue {
    /// Value of all stacks through it.
    pub total: i64,
    /// Value of the stacks that end at it.
    pub self_value: i64,
}

/// A function in both trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionDiff {
    /// The function.
    pub frame: FrameId,
    /// Before; recursion counts once in the total.
    pub before: NodeValue,
    /// After.
    pub after: NodeValue,
}

/// A node of the union while it is made.
#[derive(Clone, Debug)]
struct Node {
    frame: FrameId,
    before: NodeValue,
    after: NodeValue,
    children: Vec<u32>,
}

/// The union in the making: node 0 is the root, parents come before their children.
struct Union {
    frames: FrameTable,
    nodes: Vec<Node>,
    index: HashMap<(u32, FrameId), u32>,
}

/// Which of the two trees.
#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

// === impl FlameDiff ===

impl FlameDiff {
    /// The union of two trees, of at most `max_nodes` nodes (0: all): the heaviest in either stay,
    /// what is cut from a node moves into one child named `other`, which comes on top of the count.
    #[must_use]
    pub fn new(before: &FlameTree, after: &FlameTree, max_nodes: usize) -> Self {
        let mut union = Union::new();
        union.add(before, Side::Before);
        union.add(after, Side::After);
        union.finish(max_nodes)
    }

    /// Number of nodes, the root included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frame.len()
    }

    /// Whether both trees have nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }
}

/// The functions of both trees, and the frames that the rows refer to. Most of all by the change of
/// their own value.
#[must_use]
pub fn diff_functions(before: &FlameTree, after: &FlameTree) -> (FrameTable, Vec<FunctionDiff>) {
    let mut frames = FrameTable::default();
    let mut rows: HashMap<FrameId, FunctionDiff> = HashMap::new();
    for (tree, side) in [(before, Side::Before), (after, Side::After)] {
        for row in tree.function_table() {
            let frame = frames.intern_from(&tree.frames, row.frame);
            let entry = rows.entry(frame).or_insert(FunctionDiff {
                frame,
                before: NodeValue::default(),
                after: NodeValue::default(),
            });
            let value = NodeValue {
                total: row.total,
                self_value: row.self_value,
            };
            match side {
                Side::Before => entry.before = value,
                Side::After => entry.after = value,
            }
        }
    }
    let mut rows: Vec<FunctionDiff> = rows.into_values().collect();
    rows.sort_by_key(|row| {
        let own = row.after.self_value.abs_diff(row.before.self_value);
        let total = row.after.total.abs_diff(row.before.total);
        (Reverse((own, total)), row.frame)
    });
    (frames, rows)
}

// === impl NodeValue ===

impl NodeValue {
    fn add(&mut self, other: Self) {
        self.total = self.total.saturating_add(other.total);
        self.self_value = self.self_value.saturating_add(other.self_value);
    }
}

// === impl Node ===

impl Node {
    /// What decides whether it stays: never less than that of its children.
    fn magnitude(&self) -> u64 {
        self.before
            .total
            .unsigned_abs()
            .max(self.after.total.unsigned_abs())
    }

    fn sum(&self) -> u64 {
        let before = self.before.total.unsigned_abs();
        before.saturating_add(self.after.total.unsigned_abs())
    }
}

// === impl Union ===

impl Union {
    fn new() -> Self {
        let root = Node::of(FrameTable::ROOT);
        Self {
            frames: FrameTable::default(),
            nodes: vec![root],
            index: HashMap::new(),
        }
    }

    fn add(&mut self, tree: &FlameTree, side: Side) {
        let mut copies: Vec<Option<FrameId>> = vec![None; tree.frames.frames().len()];
        let mut path: Vec<u32> = Vec::new();
        for node in 0..tree.frame.len() {
            path.truncate(usize::from(tree.depth[node]));
            let target = match path.last() {
                None => 0,
                Some(&parent) => {
                    let id = tree.frame[node];
                    let frame = *copies[id.index()]
                        .get_or_insert_with(|| self.frames.intern_from(&tree.frames, id));
                    self.child(parent, frame)
                }
            };
            path.push(target);
            let value = NodeValue {
                total: tree.total[node],
                self_value: tree.self_value[node],
            };
            let node = &mut self.nodes[target as usize];
            match side {
                Side::Before => node.before.add(value),
                Side::After => node.after.add(value),
            }
        }
    }

    fn child(&mut self, parent: u32, frame: FrameId) -> u32 {
        if let Some(&known) = self.index.get(&(parent, frame)) {
            return known;
        }
        let new = u32::try_from(self.nodes.len()).expect("a tree has fewer than 2^32 nodes");
        self.nodes.push(Node::of(frame));
        self.nodes[parent as usize].children.push(new);
        self.index.insert((parent, frame), new);
        new
    }

    fn finish(mut self, max_nodes: usize) -> FlameDiff {
        let threshold = self.threshold(max_nodes);
        let mut diff = FlameDiff::default();
        let mut other = None;
        let mut pending: Vec<(u32, u16)> = vec![(0, 0)];
        while let Some((number, depth)) = pending.pop() {
            let mut node = self.nodes[number as usize].clone();
            diff.push(&node, depth);
            let nodes = &self.nodes;
            let (mut kept, cut): (Vec<u32>, Vec<u32>) = std::mem::take(&mut node.children)
                .into_iter()
                .partition(|&child| nodes[child as usize].magnitude() >= threshold);
            kept.sort_by_key(|&child| (nodes[child as usize].sum(), Reverse(child)));
            if !cut.is_empty() {
                let frames = &mut self.frames;
                let frame = *other
                    .get_or_insert_with(|| frames.intern("other", "", "", FrameKind::Other, 0));
                let mut rest = Node::of(frame);
                for &child in &cut {
                    let of_child = |value: NodeValue| NodeValue {
                        self_value: value.total,
                        ..value
                    };
                    rest.before.add(of_child(self.nodes[child as usize].before));
                    rest.after.add(of_child(self.nodes[child as usize].after));
                    diff.pruned_nodes += self.subtree_len(child);
                }
                // The remainder comes last, and what is pushed first comes last.
                let rest_number = self.nodes.len() as u32;
                self.nodes.push(rest);
                pending.push((rest_number, depth + 1));
            }
            pending.extend(kept.into_iter().map(|child| (child, depth + 1)));
        }
        diff.frames = self.frames;
        diff.subtree_end = subtree_ends(&diff.depth);
        diff
    }

    /// The magnitude from which nodes stay.
    fn threshold(&self, max_nodes: usize) -> u64 {
        if max_nodes == 0 || self.nodes.len() <= max_nodes {
            return 0;
        }
        let mut magnitudes: Vec<u64> = self.nodes[1..].iter().map(Node::magnitude).collect();
        let place = max_nodes.saturating_sub(1).min(magnitudes.len() - 1);
        let (_, &mut threshold, _) =
            magnitudes.select_nth_unstable_by(place, |left, right| right.cmp(left));
        // Those of just this weight would be too many.
        threshold.saturating_add(1)
    }

    fn subtree_len(&self, root: u32) -> usize {
        let mut count = 0;
        let mut pending = vec![root];
        while let Some(node) = pending.pop() {
            count += 1;
            pending.extend(&self.nodes[node as usize].children);
        }
        count
    }
}

impl Node {
    fn of(frame: FrameId) -> Self {
        Self {
            frame,
            before: NodeValue::default(),
            after: NodeValue::default(),
            children: Vec::new(),
        }
    }
}

impl FlameDiff {
    fn push(&mut self, node: &Node, depth: u16) {
        self.frame.push(node.frame);
        self.depth.push(depth);
        self.before.push(node.before);
        self.after.push(node.after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flame_builder::FlameTreeBuilder;

    fn tree(stacks: &[(&str, i64)]) -> FlameTree {
        let mut builder = FlameTreeBuilder::new();
        for (names, value) in stacks {
            let frames: Vec<_> = names
                .split(';')
                .map(|name| builder.frames.intern(name, "", "", FrameKind::Go, 0))
                .collect();
            builder.add_stack(frames, *value);
        }
        builder.finish()
    }

    fn lines(diff: &FlameDiff) -> Vec<String> {
        let rows = (0..diff.len()).map(|node| {
            let name = diff.frames.name(diff.frame[node]);
            let (before, after) = (diff.before[node], diff.after[node]);
            format!(
                "{}{name} {}/{} {}/{}",
                " ".repeat(diff.depth[node].into()),
                before.total,
                before.self_value,
                after.total,
                after.self_value
            )
        });
        rows.collect()
    }

    #[test]
    fn nodes_of_either_tree_are_there() {
        let before = tree(&[("main;old", 4), ("main;both", 2)]);
        let after = tree(&[("main;both", 3), ("main;both;new", 9)]);
        let diff = FlameDiff::new(&before, &after, 0);
        assert_eq!(
            lines(&diff),
            [
                "total 6/0 12/0",
                " main 6/0 12/0",
                "  both 2/2 12/3",
                "   new 0/0 9/9",
                "  old 4/4 0/0",
            ]
        );
        assert_eq!(diff.subtree_end, [5, 5, 4, 4, 5]);
    }

    #[test]
    fn what_is_cut_stays_in_the_sums() {
        let before = tree(&[("main;a", 100), ("main;b", 1), ("main;c;d", 2)]);
        let after = tree(&[("main;a", 90), ("main;c", 3)]);
        let diff = FlameDiff::new(&before, &after, 3);
        assert_eq!(
            lines(&diff),
            [
                "total 103/0 93/0",
                " main 103/0 93/0",
                "  a 100/100 90/90",
                "  other 3/3 3/3",
            ]
        );
        assert_eq!(diff.pruned_nodes, 3);
    }

    #[test]
    fn functions_by_the_change_of_their_own_value() {
        let before = tree(&[("main;a;a", 10), ("main;b", 5)]);
        let after = tree(&[("main;a", 11), ("main;b", 50)]);
        let (frames, rows) = diff_functions(&before, &after);
        let names: Vec<&str> = rows.iter().map(|row| frames.name(row.frame)).collect();
        assert_eq!(names, ["b", "a", "main"]);
        let total = |total, self_value| NodeValue { total, self_value };
        assert_eq!(
            (rows[1].before, rows[1].after),
            (total(10, 10), total(11, 11))
        );
        assert_eq!(
            (rows[2].before, rows[2].after),
            (total(15, 0), total(61, 0))
        );
    }

    #[test]
    fn nothing_against_nothing() {
        let diff = FlameDiff::new(&FlameTree::default(), &tree(&[]), 10);
        assert!(diff.is_empty());
    }
}
