//! A flame graph in levels, as Pyroscope's clients take it.

use candela_model::FlameTree;

use crate::error::WriteError;
use crate::pyroscope::name_tree::NameTree;
use crate::pyroscope::name_tree::OTHER;
use crate::pyroscope::name_tree::ROOT;

pub(crate) const NAME: &str = "flamebearer";

/// A flame graph in levels (`querier.v1.FlameGraph`). Functions that differ by file or binary only
/// are one here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flamebearer {
    /// What the bars are called. The first is that of the root, `total`.
    pub names: Vec<String>,
    /// The bars of each depth from left to right, four numbers each: distance from the end of the
    /// bar before, total, self, index in `names`. All but the last in the unit of the values.
    pub levels: Vec<Vec<i64>>,
    /// Value of everything.
    pub total: i64,
    /// The largest self value.
    pub max_self: i64,
}

/// A bar that is still to be drawn.
struct Bar {
    level: usize,
    start: i64,
    total: i64,
    self_value: i64,
    /// Its node; `None` for the remainder that was folded.
    node: Option<usize>,
}

impl Flamebearer {
    /// The flame graph of a tree, of about `max_nodes` bars (0: all). The weight of the lightest of
    /// the `max_nodes` heaviest decides: children of one parent that are lighter become one bar
    /// named `other`, without anything above it. Nodes of that name are folded with them.
    ///
    /// # Errors
    /// When the tree has negative values.
    pub fn new(tree: &FlameTree, max_nodes: usize) -> Result<Self, WriteError> {
        let tree = NameTree::of(NAME, [tree])?;
        let smallest = tree.smallest_kept(max_nodes);
        let mut names = Names::new(tree.names.len());
        let mut graph = Self {
            total: tree.nodes[0].total[0],
            ..Self::default()
        };
        // Clients in the field were written against this order: the last child comes first, which
        // shows in the order of the names.
        let mut pending = vec![Bar {
            level: 0,
            start: 0,
            total: graph.total,
            self_value: tree.nodes[0].self_value[0],
            node: Some(0),
        }];
        while let Some(bar) = pending.pop() {
            let name = match bar.node {
                Some(0) => names.of(ROOT),
                Some(node) => names.of(tree.name(node)),
                None => names.of(OTHER),
            };
            if bar.level == graph.levels.len() {
                graph.levels.push(Vec::new());
            }
            let row = [bar.start, bar.total, bar.self_value, name];
            graph.levels[bar.level].extend(row.iter().rev());
            graph.max_self = graph.max_self.max(bar.self_value);
            let Some(node) = bar.node else {
                continue;
            };
            let mut start = bar.start.saturating_add(bar.self_value);
            let mut folded = 0_i64;
            for &child in &tree.nodes[node].children {
                let below = &tree.nodes[child];
                let total = below.total[0];
                if total < smallest || tree.name(child) == OTHER {
                    folded = folded.saturating_add(total);
                    continue;
                }
                pending.push(Bar {
                    level: bar.level + 1,
                    start,
                    total,
                    self_value: below.self_value[0],
                    node: Some(child),
                });
                start = start.saturating_add(total);
            }
            if folded != 0 {
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
            delta_encode(level, 4, &[0]);
        }
        graph.names = names.list;
        Ok(graph)
    }
}

/// Names in the order in which they are first asked for.
pub(crate) struct Names<'a> {
    pub(crate) list: Vec<String>,
    indices: hashbrown::HashMap<&'a str, i64>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            list: Vec::new(),
            indices: hashbrown::HashMap::with_capacity(count),
        }
    }

    pub(crate) fn of(&mut self, name: &'a str) -> i64 {
        let list = &mut self.list;
        *self.indices.entry(name).or_insert_with(|| {
            list.push(name.to_owned());
            list.len() as i64 - 1
        })
    }
}

/// Turns starts into distances from the end of the bar before. Bars are `width` numbers each, with a
/// start at each of `starts` and the length of the bar right behind it.
pub(crate) fn delta_encode(level: &mut [i64], width: usize, starts: &[usize]) {
    for &start in starts {
        let mut end = 0_i64;
        for bar in level.chunks_exact_mut(width) {
            bar[start] = bar[start].saturating_sub(end);
            end = end
                .saturating_add(bar[start])
                .saturating_add(bar[start + 1]);
        }
    }
}
