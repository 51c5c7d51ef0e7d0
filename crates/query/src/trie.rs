//! Merging stacks into a tree.
//!
//! `candela_model::FlameTreeBuilder` finds children by hashing, which is right for stacks in any
//! order. Sources here are tries in which parents come first and whole subtrees stand together, so
//! a child is mostly new or one of its parent's few latest: a short walk over siblings that are in
//! the cache beats a hash look-up that is not.

use candela_model::FrameId;
use candela_model::FrameTable;
use hashbrown::HashMap;

use crate::function_tree::FunctionTree;

/// No node.
const NONE: u32 = u32::MAX;
/// A parent with more children has them in the hash table.
const MAX_WALK: u32 = 12;

/// A node's place in the tree.
#[derive(Clone, Copy, Debug)]
struct Links {
    frame: FrameId,
    parent: u32,
    /// The latest child.
    child: u32,
    /// The sibling made before.
    sibling: u32,
    children: u32,
}

/// A trie of frames. Node 0 is the root.
#[derive(Debug)]
pub(crate) struct Trie {
    pub(crate) frames: FrameTable,
    links: Vec<Links>,
    /// The children of parents with many.
    wide: HashMap<(u32, FrameId), u32>,
}

impl Trie {
    pub(crate) const ROOT: u32 = 0;

    pub(crate) fn new() -> Self {
        let root = Links {
            frame: FrameTable::ROOT,
            parent: 0,
            child: NONE,
            sibling: NONE,
            children: 0,
        };
        Self {
            frames: FrameTable::default(),
            links: vec![root],
            wide: HashMap::new(),
        }
    }

    pub(crate) fn reserve(&mut self, nodes: usize) {
        self.links.reserve(nodes);
    }

    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// Parent and frame of each node, parents before their children; the root is its own parent.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (u32, FrameId)> + '_ {
        self.links.iter().map(|links| (links.parent, links.frame))
    }

    /// The child of `parent` for `frame`, made when it is new.
    #[inline]
    pub(crate) fn child(&mut self, parent: u32, frame: FrameId) -> u32 {
        let above = self.links[parent as usize];
        if above.children > MAX_WALK {
            return match self.wide.get(&(parent, frame)) {
                Some(&known) => known,
                None => self.push(parent, frame),
            };
        }
        let mut sibling = above.child;
        while sibling != NONE {
            let links = &self.links[sibling as usize];
            if links.frame == frame {
                return sibling;
            }
            sibling = links.sibling;
        }
        self.push(parent, frame)
    }

    fn push(&mut self, parent: u32, frame: FrameId) -> u32 {
        let node = u32::try_from(self.links.len()).expect("the budget is far below 2^32 nodes");
        let above = &mut self.links[parent as usize];
        let sibling = std::mem::replace(&mut above.child, node);
        above.children += 1;
        let count = above.children;
        self.links.push(Links {
            frame,
            parent,
            child: NONE,
            sibling,
            children: 0,
        });
        if count > MAX_WALK {
            self.remember(parent, node, count);
        }
        node
    }

    /// Puts the new child into the table; with the first one too many also its siblings.
    fn remember(&mut self, parent: u32, node: u32, count: u32) {
        let mut next = node;
        while next != NONE {
            let links = &self.links[next as usize];
            self.wide.insert((parent, links.frame), next);
            next = if count == MAX_WALK + 1 {
                links.sibling
            } else {
                NONE
            };
        }
    }

    /// The nodes in pre-order, and for each node its place there. `expected` are guesses of the
    /// values at each node: the closer they are, the fewer jumps a tree written from it takes.
    pub(crate) fn into_function_tree(self, expected: Vec<f32>) -> (FunctionTree, Vec<u32>) {
        let count = self.links.len();
        let mut weight = expected;
        for node in (1..count).rev() {
            weight[self.links[node].parent as usize] += weight[node];
        }
        let mut places = vec![0; count];
        let mut frame = Vec::with_capacity(count);
        let mut parent = Vec::with_capacity(count);
        let mut pending = vec![Self::ROOT];
        while let Some(node) = pending.pop() {
            let links = self.links[node as usize];
            places[node as usize] = frame.len() as u32;
            frame.push(links.frame);
            parent.push(places[links.parent as usize]);
            let first = pending.len();
            let mut child = links.child;
            while child != NONE {
                pending.push(child);
                child = self.links[child as usize].sibling;
            }
            if pending.len() - first > 1 {
                let weight = |node: u32| weight[node as usize];
                pending[first..]
                    .sort_unstable_by(|&one, &other| weight(one).total_cmp(&weight(other)));
            }
        }
        let mut subtree_end: Vec<u32> = (1..=count as u32).collect();
        for place in (0..count).rev() {
            let end = subtree_end[place];
            let above = &mut subtree_end[parent[place] as usize];
            *above = end.max(*above);
        }
        let tree = FunctionTree::new(self.frames, frame, parent, subtree_end);
        (tree, places)
    }
}

#[cfg(test)]
mod tests {
    use candela_model::FlameTreeBuilder;
    use candela_model::FrameKind;
    use proptest::prelude::*;

    use super::*;

    fn frame(frames: &mut FrameTable, number: u32) -> FrameId {
        frames.intern(&format!("f{number}"), "", "", FrameKind::Native, 0)
    }

    proptest! {
        #[test]
        fn it_makes_the_tree_that_the_builder_makes(
            stacks in prop::collection::vec(
                (prop::collection::vec(0_u32..40, 0..6), -3_i64..20),
                0..200,
            ),
            threads in 1_usize..4,
        ) {
            let mut trie = Trie::new();
            let mut sums: HashMap<u32, i64> = HashMap::new();
            let mut builder = FlameTreeBuilder::new();
            for (stack, value) in stacks {
                let mut node = Trie::ROOT;
                for &number in &stack {
                    let frame = frame(&mut trie.frames, number);
                    node = trie.child(node, frame);
                }
                *sums.entry(node).or_default() += value;
                let frames: Vec<FrameId> = stack
                    .iter()
                    .map(|&number| frame(&mut builder.frames, number))
                    .collect();
                builder.add_stack(frames, value);
            }
            let expected = (0..trie.len()).map(|node| (node * 7 % 5) as f32).collect();
            let (functions, places) = trie.into_function_tree(expected);
            let mut values = vec![0; functions.len()];
            for (node, sum) in sums {
                values[places[node as usize] as usize] = sum;
            }
            let (tree, expected) = (functions.flame_tree(values, threads), builder.finish());
            prop_assert_eq!(tree.frame, expected.frame);
            prop_assert_eq!(tree.depth, expected.depth);
            prop_assert_eq!(tree.subtree_end, expected.subtree_end);
            prop_assert_eq!(tree.total, expected.total);
            prop_assert_eq!(tree.self_value, expected.self_value);
        }
    }
}
