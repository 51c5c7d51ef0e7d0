//! Stacks that share their beginnings: nodes that know their parents, as nearly every JSON format
//! of profiles has them.

use crate::options::Limits;

/// The parents of nodes, put in order. Whatever the input says, following parents ends.
#[derive(Debug)]
pub(crate) struct StackForest {
    parents: Vec<u32>,
    /// Where a node's stack ends: at itself, or at the one above it where stacks are cut.
    ends: Vec<u32>,
    /// Nodes whose parents led in a circle or outside; each became a root.
    pub(crate) broken_nodes: u64,
}

const NONE: u32 = u32::MAX;

impl StackForest {
    /// From the parent of each node, by position.
    pub(crate) fn new(parents: &[Option<u32>], limits: &Limits) -> Self {
        let count = parents.len().min(NONE as usize);
        let mut forest = Self {
            parents: vec![NONE; count],
            ends: (0..count as u32).collect(),
            broken_nodes: 0,
        };
        // One more than may be, so that the cut is seen where stacks are cut.
        let deepest =
            u32::try_from(limits.max_stack_depth).map_or(NONE - 1, |max| max.min(NONE - 2) + 1);
        // 0 is unknown, the number of frames otherwise.
        let mut depths = vec![0_u32; count];
        let mut is_on_path = vec![false; count];
        let mut path: Vec<u32> = Vec::new();
        for node in 0..count as u32 {
            let mut at = node;
            while depths[at as usize] == 0 {
                is_on_path[at as usize] = true;
                path.push(at);
                let Some(parent) = parents[at as usize] else {
                    break;
                };
                if parent as usize >= count || is_on_path[parent as usize] {
                    forest.broken_nodes += 1;
                    break;
                }
                forest.parents[at as usize] = parent;
                at = parent;
            }
            while let Some(below) = path.pop() {
                let below = below as usize;
                is_on_path[below] = false;
                let parent = forest.parents[below];
                let depth_above = depths.get(parent as usize).copied().unwrap_or(0);
                depths[below] = (depth_above + 1).min(deepest);
                if depth_above == deepest {
                    forest.ends[below] = forest.ends[parent as usize];
                }
            }
        }
        forest
    }

    /// The nodes of a node's stack, root first.
    pub(crate) fn path(&self, node: u32, root_first: &mut Vec<u32>) {
        root_first.clear();
        let mut at = self.ends.get(node as usize).copied().unwrap_or(NONE);
        while at != NONE {
            root_first.push(at);
            at = self.parents[at as usize];
        }
        root_first.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(parents: &[Option<u32>], max_stack_depth: usize) -> (Vec<Vec<u32>>, u64) {
        let limits = Limits {
            max_stack_depth,
            ..Limits::default()
        };
        let forest = StackForest::new(parents, &limits);
        let path = |node| {
            let mut path = Vec::new();
            forest.path(node, &mut path);
            path
        };
        let paths = (0..parents.len() as u32).map(path).collect();
        (paths, forest.broken_nodes)
    }

    #[test]
    fn parents_may_come_later() {
        let (paths, broken) = paths(&[Some(2), None, Some(1)], 10);
        assert_eq!(paths, [vec![1, 2, 0], vec![1], vec![1, 2]]);
        assert_eq!(broken, 0);
    }

    #[test]
    fn circles_and_parents_outside_end() {
        let (paths, broken) = paths(&[Some(1), Some(2), Some(0), Some(3), Some(9), Some(2)], 10);
        assert_eq!(broken, 3);
        assert_eq!(paths[2], [2]);
        assert_eq!(paths[0], [2, 1, 0]);
        assert_eq!(paths[3..5], [vec![3], vec![4]]);
        assert_eq!(paths[5], [2, 5]);
    }

    #[test]
    fn deep_stacks_keep_their_roots() {
        let chain: Vec<Option<u32>> = (0..100_000_u32).map(|node| node.checked_sub(1)).collect();
        let (paths, _) = paths(&chain, 3);
        assert_eq!(paths[3], [0, 1, 2, 3]);
        assert_eq!(paths[99_999], [0, 1, 2, 3]);
    }
}
