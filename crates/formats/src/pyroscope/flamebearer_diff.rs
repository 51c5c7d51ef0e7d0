//! Two flame graphs in levels, side by side.

use candela_model::FlameTree;

use crate::error::WriteError;
use crate::pyroscope::flamebearer::NAME;
use crate::pyroscope::flamebearer::Names;
use crate::pyroscope::flamebearer::delta_encode;
use crate::pyroscope::name_tree::NameTree;
use crate::pyroscope::name_tree::OTHER;
use crate::pyroscope::name_tree::ROOT;

/// The union of two flame graphs in levels (`querier.v1.FlameGraphDiff`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlamebearerDiff {
    /// What the bars are called. The first is that of the root, `total`.
    pub names: Vec<String>,
    /// The bars of each depth from left to right, seven numbers each: of the left profile the
    /// distance from the end of the bar before, total and self, the same of the right one, and the
    /// index in `names`.
    pub levels: Vec<Vec<i64>>,
    /// Value of everything in both.
    pub total: i64,
    /// The largest self value of either.
    pub max_self: i64,
    /// Value of everything in the left profile.
    pub left_ticks: i64,
    /// Value of everything in the right profile.
    pub right_ticks: i64,
}

/// A bar that is still to be drawn: its place on both sides.
struct Bar {
    level: usize,
    start: [i64; 2],
    total: [i64; 2],
    self_value: [i64; 2],
    /// Its node; `None` for the remainder that was folded.
    node: Option<usize>,
}

impl FlamebearerDiff {
    /// Compares two trees, with about `max_nodes` bars (0: all). A bar stays when it is heavy
    /// enough on either side, or named `other`.
    ///
    /// # Errors
    /// When a tree has negative values.
    pub fn new(left: &FlameTree, right: &FlameTree, max_nodes: usize) -> Result<Self, WriteError> {
        let tree = NameTree::of(NAME, [left, right])?;
        let smallest = tree.smallest_kept(max_nodes);
        let mut names = Names::new(tree.names.len());
        let root = &tree.nodes[0];
        let [left_ticks, right_ticks] = root.total;
        let mut graph = Self {
            total: left_ticks.saturating_add(right_ticks),
            left_ticks,
            right_ticks,
            ..Self::default()
        };
        let mut pending = vec![Bar {
            level: 0,
            start: [0, 0],
            total: root.total,
            self_value: root.self_value,
            node: Some(0),
        }];
        while let Some(bar) = pending.pop() {
            let name = match bar.node {
                Some(0) => names.of(ROOT),
                Some(node) => names.of(tree.name(node)),
                None => names.of(OTHER),
            };
            graph.push(&bar, name);
            let Some(node) = bar.node else {
                continue;
            };
            let mut start = sum(bar.start, bar.self_value);
            let mut folded = [0, 0];
            for &child in &tree.nodes[node].children {
                let below = &tree.nodes[child];
                if below.weight() < smallest && tree.name(child) != OTHER {
                    folded = sum(folded, below.total);
                    continue;
                }
                pending.push(Bar {
                    level: bar.level + 1,
                    start,
                    total: below.total,
                    self_value: below.self_value,
                    node: Some(child),
                });
                start = sum(start, below.total);
            }
            if folded != [0, 0] {
                pending.push(Bar {
                    level: bar.level + 1,
                    start,
                    total: folded,
                    self_value: folded,
                    node: None,
                });
            }
        }
        for level in &mut graph.levels {
            // Written from the right to the left.
            level.reverse();
            delta_encode(level, 7, &[0, 3]);
        }
        graph.names = names.list;
        Ok(graph)
    }

    fn push(&mut self, bar: &Bar, name: i64) {
        if bar.level == self.levels.len() {
            self.levels.push(Vec::new());
        }
        let [left, right] =
            [0, 1].map(|side| [bar.start[side], bar.total[side], bar.self_value[side]]);
        let row = left.into_iter().chain(right).chain([name]);
        self.levels[bar.level].extend(row.rev());
        self.max_self = bar.self_value.into_iter().fold(self.max_self, i64::max);
    }
}

fn sum(left: [i64; 2], right: [i64; 2]) -> [i64; 2] {
    [0, 1].map(|side| left[side].saturating_add(right[side]))
}
