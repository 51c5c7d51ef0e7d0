//! The stacks of one service as a tree in pre-order, and their ids by frequency.

use hashbrown::HashMap;

use super::unsymbolized::CountedNode;
use crate::head::HeadTables;
use crate::head::NO_LOCATION;
use crate::locations::LocationRow;
use crate::locations::LocationTable;

/// No stack ends at a node.
pub(super) const NO_STACK: u32 = u32::MAX;

/// A node of table `stack_nodes`, its numbers counted from the service's first node and stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeNode {
    /// The parent; the root's is itself.
    pub(super) parent: u32,
    pub(super) depth: u16,
    pub(super) subtree_end: u32,
    /// In the head's tables; `NO_LOCATION` at the root.
    pub(super) location: u32,
    /// `NO_STACK` when no sample's stack ends here.
    pub(super) stack: u32,
    pub(super) is_recursive: bool,
}

/// Where stacks end, and how many samples do there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackEnd {
    /// In the trie of the head.
    pub(crate) node: u32,
    /// At least 1.
    pub(crate) samples: u32,
}

/// The tree of one service.
#[derive(Debug)]
pub(super) struct ServiceTree {
    pub(super) nodes: Vec<TreeNode>,
    /// The head's node of each stack, the most frequent first.
    pub(super) stack_ends: Vec<u32>,
    /// Samples of each.
    pub(super) stack_samples: Vec<u32>,
}

/// What the trees of all services of a block share while they are made: arrays over the nodes of
/// the head, cleaned after each service by what it touched.
#[derive(Debug)]
pub(super) struct TreeScratch {
    /// Samples that end at the node.
    samples: Vec<u32>,
    /// Position in the service's list of nodes, plus one.
    position: Vec<u32>,
    functions: FunctionNumbers,
}

/// Numbers for what is one function, by location.
#[derive(Debug, Default)]
pub(super) struct FunctionNumbers {
    by_location: HashMap<u32, u32>,
    by_identity: HashMap<LocationRow, u32>,
}

/// A service's part of the head's trie, parents first.
struct Subset {
    nodes: Vec<u32>,
    parents: Vec<u32>,
    /// Samples through the node: what makes a child heavy. Values of several types cannot be
    /// added up, numbers of samples can.
    weights: Vec<u64>,
}

impl ServiceTree {
    /// The nodes with their samples.
    pub(super) fn counted_nodes(&self) -> impl Iterator<Item = CountedNode> {
        self.nodes.iter().map(|node| {
            let samples = self.stack_samples.get(node.stack as usize);
            CountedNode {
                parent: node.parent,
                location: node.location,
                samples: samples.copied().unwrap_or(0).into(),
            }
        })
    }
}

impl TreeScratch {
    pub(super) fn new(node_count: usize) -> Self {
        Self {
            samples: vec![0; node_count],
            position: vec![0; node_count],
            functions: FunctionNumbers::default(),
        }
    }

    /// The tree of one service's stacks, each of which is there once.
    pub(super) fn tree(&mut self, tables: &HeadTables, ends: &[StackEnd]) -> ServiceTree {
        for end in ends {
            self.samples[end.node as usize] = end.samples;
        }
        let mut ends: Vec<u32> = ends.iter().map(|end| end.node).collect();
        let subset = self.subset(tables, &ends);
        let order = pre_order(&subset);
        let mut nodes = self.nodes_in_order(tables, &subset, &order);
        let mut place = vec![0_u32; subset.nodes.len()];
        for (index, &position) in order.iter().enumerate() {
            place[position as usize] = index as u32;
        }
        ends.sort_unstable_by_key(|&node| {
            let samples = self.samples[node as usize];
            let position = self.position[node as usize] - 1;
            (std::cmp::Reverse(samples), place[position as usize])
        });
        for (stack, &node) in ends.iter().enumerate() {
            let position = self.position[node as usize] - 1;
            nodes[place[position as usize] as usize].stack = stack as u32;
        }
        let samples = ends.iter().map(|&node| self.samples[node as usize]);
        let stack_samples = samples.collect();
        for &node in &subset.nodes {
            self.samples[node as usize] = 0;
            self.position[node as usize] = 0;
        }
        ServiceTree {
            nodes,
            stack_ends: ends,
            stack_samples,
        }
    }

    /// The nodes above and at the ends of the service's stacks.
    fn subset(&mut self, tables: &HeadTables, ends: &[u32]) -> Subset {
        let parents = tables.parents();
        let mut nodes = vec![0];
        self.position[0] = 1;
        for &end in ends {
            let mut node = end;
            while self.position[node as usize] == 0 {
                self.position[node as usize] = 1;
                nodes.push(node);
                node = parents[node as usize];
            }
        }
        // In the head a parent is always older than its children.
        nodes.sort_unstable();
        for (index, &node) in nodes.iter().enumerate() {
            self.position[node as usize] = index as u32 + 1;
        }
        let local_parents: Vec<u32> = nodes
            .iter()
            .map(|&node| self.position[parents[node as usize] as usize] - 1)
            .collect();
        let mut weights: Vec<u64> = nodes
            .iter()
            .map(|&node| self.samples[node as usize].into())
            .collect();
        for index in (1..nodes.len()).rev() {
            weights[local_parents[index] as usize] += weights[index];
        }
        Subset {
            nodes,
            parents: local_parents,
            weights,
        }
    }

    fn nodes_in_order(
        &mut self,
        tables: &HeadTables,
        subset: &Subset,
        order: &[u32],
    ) -> Vec<TreeNode> {
        let mut tree: Vec<TreeNode> = Vec::with_capacity(order.len());
        let mut place = vec![0_u32; order.len()];
        let mut path: Vec<(u32, u32)> = Vec::new();
        let mut on_path: HashMap<u32, u32> = HashMap::new();
        for (index, &position) in order.iter().enumerate() {
            let number = index as u32;
            place[position as usize] = number;
            let parent = place[subset.parents[position as usize] as usize];
            while path.last().is_some_and(|&(node, _)| node != parent) {
                let (node, function) = path.pop().expect("the loop condition saw an entry");
                tree[node as usize].subtree_end = number;
                *on_path.entry(function).or_default() -= 1;
            }
            let location = tables.node_locations()[subset.nodes[position as usize] as usize];
            let function = self.functions.number(tables.locations(), location);
            let occurrences = on_path.entry(function).or_default();
            let is_recursive = *occurrences > 0;
            *occurrences += 1;
            tree.push(TreeNode {
                parent,
                depth: u16::try_from(path.len()).expect("the head caps the depth of stacks"),
                subtree_end: 0,
                location,
                stack: NO_STACK,
                is_recursive,
            });
            path.push((number, function));
        }
        for (node, _) in path {
            tree[node as usize].subtree_end = order.len() as u32;
        }
        tree
    }
}

impl FunctionNumbers {
    pub(super) fn number(&mut self, table: &LocationTable, location: u32) -> u32 {
        if location == NO_LOCATION {
            return NO_LOCATION;
        }
        let by_identity = &mut self.by_identity;
        *self.by_location.entry(location).or_insert_with(|| {
            let row = table.get(location);
            let identity = if row.is_symbolized {
                LocationRow {
                    kind: row.kind,
                    function_name: row.function_name,
                    file_name: row.file_name,
                    start_line: row.start_line,
                    mapping_file: row.mapping_file,
                    is_symbolized: true,
                    ..LocationRow::default()
                }
            } else {
                *row
            };
            let next = by_identity.len() as u32;
            *by_identity.entry(identity).or_insert(next)
        })
    }
}

/// Positions of a subset in pre-order, heavy children first, equal ones oldest first.
fn pre_order(subset: &Subset) -> Vec<u32> {
    let count = subset.nodes.len();
    let mut by_parent: Vec<u32> = (1..count as u32).collect();
    // The lightest first: the order is taken from the end of a stack.
    by_parent.sort_unstable_by_key(|&position| {
        let index = position as usize;
        let weight = subset.weights[index];
        (subset.parents[index], weight, std::cmp::Reverse(position))
    });
    let mut starts = vec![0_u32; count + 1];
    for &position in &by_parent {
        starts[subset.parents[position as usize] as usize + 1] += 1;
    }
    for index in 1..starts.len() {
        starts[index] += starts[index - 1];
    }
    let mut order = Vec::with_capacity(count);
    let mut pending = vec![0_u32];
    while let Some(position) = pending.pop() {
        order.push(position);
        let index = position as usize;
        let children = starts[index] as usize..starts[index + 1] as usize;
        pending.extend_from_slice(&by_parent[children]);
    }
    order
}
