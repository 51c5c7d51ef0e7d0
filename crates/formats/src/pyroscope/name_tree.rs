//! Trees whose nodes are told apart by name alone, as Pyroscope's are: one or two trees of ours at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use candela_model::FlameTree;
use hashbrown::HashMap;

use crate::error::WriteError;

/// What pruning calls what it folds.
pub(crate) const OTHER: &str = "other";

/// The name of the root, and of frames that have none.
pub(crate) const ROOT: &str = "total";

/// A node of `SIDES` trees side by side; where a tree has no such node its values are 0.
#[derive(Clone, Debug)]
pub(crate) struct NameNode<const SIDES: usize> {
    pub(crate) name: usize,
    pub(crate) total: [i64; SIDES],
    pub(crate) self_value: [i64; SIDES],
    /// Sorted by name.
    pub(crate) children: Vec<usize>,
}

/// Trees merged by name. Node 0 is the root; parents come before their children.
#[derive(Debug)]
pub(crate) struct NameTree<'a, const SIDES: usize> {
    pub(crate) nodes: Vec<NameNode<SIDES>>,
    pub(crate) names: Vec<&'a str>,
    ids: HashMap<&'a str, usize>,
}

impl<'a, const SIDES: usize> NameTree<'a, SIDES> {
    /// The union of some trees.
    ///
    /// # Errors
    /// When a value is negative: none of the formats that are made of it can say so.
    pub(crate) fn of(
        format: &'static str,
        trees: [&'a FlameTree; SIDES],
    ) -> Result<Self, WriteError> {
        let mut union = Self {
            nodes: Vec::new(),
            names: Vec::new(),
            ids: HashMap::new(),
        };
        let root = union.name_id(ROOT);
        union.nodes.push(NameNode::new(root));
        let mut children = HashMap::new();
        for (side, tree) in trees.into_iter().enumerate() {
            union.add(format, tree, side, &mut children)?;
        }
        union.sort_children();
        Ok(union)
    }

    pub(crate) fn name(&self, node: usize) -> &'a str {
        self.names[self.nodes[node].name]
    }

    /// The smallest weight of the `max_nodes` heaviest nodes below the root, 0 when there are no
    /// more than that or `max_nodes` is 0. A node weighs what it has in the tree where it has more.
    pub(crate) fn smallest_kept(&self, max_nodes: usize) -> i64 {
        if max_nodes == 0 || self.nodes.len() - 1 < max_nodes {
            return 0;
        }
        let mut heaviest = BinaryHeap::with_capacity(max_nodes + 1);
        for node in &self.nodes[1..] {
            heaviest.push(Reverse(node.weight()));
            if heaviest.len() > max_nodes {
                heaviest.pop();
            }
        }
        heaviest.peek().map_or(0, |Reverse(weight)| *weight)
    }

    fn name_id(&mut self, name: &'a str) -> usize {
        let names = &mut self.names;
        *self.ids.entry(name).or_insert_with(|| {
            names.push(name);
            names.len() - 1
        })
    }

    fn add(
        &mut self,
        format: &'static str,
        tree: &'a FlameTree,
        side: usize,
        children: &mut HashMap<(usize, usize), usize>,
    ) -> Result<(), WriteError> {
        let mut path: Vec<usize> = Vec::new();
        for node in 0..tree.len() {
            path.truncate(usize::from(tree.depth[node]));
            let ours = match path.last() {
                None => 0,
                Some(&parent) => {
                    let name = self.name_id(tree.frames.name(tree.frame[node]));
                    self.child(parent, name, children)
                }
            };
            path.push(ours);
            let (total, self_value) = (tree.total[node], tree.self_value[node]);
            if total < 0 || self_value < 0 {
                return Err(WriteError::Negative {
                    format,
                    name: tree.frames.name(tree.frame[node]).to_owned(),
                });
            }
            let known = &mut self.nodes[ours];
            known.total[side] = known.total[side].saturating_add(total);
            known.self_value[side] = known.self_value[side].saturating_add(self_value);
        }
        Ok(())
    }

    fn child(
        &mut self,
        parent: usize,
        name: usize,
        children: &mut HashMap<(usize, usize), usize>,
    ) -> usize {
        let nodes = &mut self.nodes;
        *children.entry((parent, name)).or_insert_with(|| {
            let new = nodes.len();
            nodes.push(NameNode::new(name));
            nodes[parent].children.push(new);
            new
        })
    }

    fn sort_children(&mut self) {
        let mut rank = vec![0_usize; self.names.len()];
        let mut by_name: Vec<usize> = (0..self.names.len()).collect();
        by_name.sort_unstable_by_key(|&name| self.names[name]);
        for (position, name) in by_name.into_iter().enumerate() {
            rank[name] = position;
        }
        for node in 0..self.nodes.len() {
            let mut children = std::mem::take(&mut self.nodes[node].children);
            children.sort_unstable_by_key(|&child| rank[self.nodes[child].name]);
            self.nodes[node].children = children;
        }
    }
}

impl<const SIDES: usize> NameNode<SIDES> {
    fn new(name: usize) -> Self {
        Self {
            name,
            total: [0; SIDES],
            self_value: [0; SIDES],
            children: Vec::new(),
        }
    }

    pub(crate) fn weight(&self) -> i64 {
        self.total.into_iter().max().unwrap_or(0)
    }
}
