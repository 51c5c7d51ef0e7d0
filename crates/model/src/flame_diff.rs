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

/// A union that takes more memory than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the two trees together have too many nodes")]
pub struct UnionTooLarge;

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

/// Which of the two trees.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    Before = 0,
    After = 1,
}

// === impl FlameDiff ===

impl FlameDiff {
    /// Bytes that a node takes.
    pub(crate) const NODE_BYTES: usize =
        size_of::<FrameId>() + size_of::<u16>() + size_of::<u32>() + 2 * size_of::<NodeValue>();

    /// Number of nodes, the root included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frame.len()
    }

    /// Estimated bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.len() * Self::NODE_BYTES + self.frames.bytes()
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
    pub(crate) fn add(&mut self, other: Self) {
        self.total = self.total.saturating_add(other.total);
        self.self_value = self.self_value.saturating_add(other.self_value);
    }
}

// === impl FlameDiff: pruning ===

impl FlameDiff {
    pub(crate) fn push(&mut self, frame: FrameId, depth: u16, before: NodeValue, after: NodeValue) {
        self.frame.push(frame);
        self.depth.push(depth);
        self.before.push(before);
        self.after.push(after);
    }

    pub(crate) fn pruned(mut self, max_nodes: usize) -> Self {
        let threshold = self.threshold(max_nodes);
        if threshold == 0 {
            return self;
        }
        let other = self.frames.intern("other", "", "", FrameKind::Other, 0);
        let mut pruned = Self {
            frames: std::mem::take(&mut self.frames),
            ..Self::default()
        };
        // Nodes that stay and have not ended, with the values of what was cut from them.
        let mut open: Vec<(usize, Option<[NodeValue; 2]>)> = Vec::new();
        let mut node = 0;
        while node < self.len() {
            self.close_until(&mut pruned, &mut open, node, other);
            let (before, after) = (self.before[node], self.after[node]);
            if node == 0 || self.magnitude(node) >= threshold {
                pruned.push(self.frame[node], self.depth[node], before, after);
                open.push((node, None));
                node += 1;
                continue;
            }
            let (_, cut) = open.last_mut().expect("the root stays open until the end");
            let cut = cut.get_or_insert_default();
            for (sum, value) in cut.iter_mut().zip([before, after]) {
                sum.add(NodeValue {
                    self_value: value.total,
                    ..value
                });
            }
            let end = self.subtree_end[node] as usize;
            pruned.pruned_nodes += end - node;
            node = end;
        }
        self.close_until(&mut pruned, &mut open, self.len(), other);
        pruned.subtree_end = subtree_ends(&pruned.depth);
        pruned
    }

    /// Ends all open nodes whose subtree ends at or before `next`, writing what was cut from them.
    fn close_until(
        &self,
        pruned: &mut Self,
        open: &mut Vec<(usize, Option<[NodeValue; 2]>)>,
        next: usize,
        other: FrameId,
    ) {
        while let Some((node, cut)) =
            open.pop_if(|(node, _)| self.subtree_end[*node] as usize <= next)
        {
            if let Some([before, after]) = cut {
                pruned.push(other, self.depth[node].saturating_add(1), before, after);
            }
        }
    }

    /// What decides whether a node stays: never less than that of its children.
    fn magnitude(&self, node: usize) -> u64 {
        let before = self.before[node].total.unsigned_abs();
        before.max(self.after[node].total.unsigned_abs())
    }

    /// The magnitude from which nodes stay; 0 when all do.
    fn threshold(&self, max_nodes: usize) -> u64 {
        if max_nodes == 0 || self.len() <= max_nodes {
            return 0;
        }
        let mut magnitudes: Vec<u64> = (1..self.len()).map(|node| self.magnitude(node)).collect();
        let place = max_nodes.saturating_sub(1).min(magnitudes.len() - 1);
        let (_, &mut threshold, _) =
            magnitudes.select_nth_unstable_by(place, |left, right| right.cmp(left));
        // Those of just this weight would be too many.
        threshold.saturating_add(1)
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
