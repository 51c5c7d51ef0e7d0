//! The tree under construction.
//!
//! `candela_model::FlameTreeBuilder` finds children by hashing, which is right for stacks in any
//! order. Sources here are tries in which parents come first and whole subtrees stand together, so
//! a child is mostly new or one of its parent's few latest: a short walk over siblings that are in
//! the cache beats a hash look-up that is not.

use candela_model::FlameTree;
use candela_model::FrameId;
use candela_model::FrameTable;
use hashbrown::HashMap;

use crate::sums::Amount;

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

/// A trie of frames whose nodes hold sums. Node 0 is the root.
#[derive(Debug)]
pub(crate) struct Trie<A> {
    pub(crate) frames: FrameTable,
    links: Vec<Links>,
    sums: Vec<A>,
    /// The children of parents with many.
    wide: HashMap<(u32, FrameId), u32>,
}

/// A sum as a whole number.
pub(crate) trait Rounded: Amount {
    fn rounded(self) -> i64;
}

impl Rounded for i64 {
    fn rounded(self) -> i64 {
        self
    }
}

impl Rounded for f64 {
    fn rounded(self) -> i64 {
        self.round() as i64
    }
}

impl<A: Rounded> Trie<A> {
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
            sums: vec![A::default()],
            wide: HashMap::new(),
        }
    }

    pub(crate) fn reserve(&mut self, nodes: usize) {
        self.links.reserve(nodes);
        self.sums.reserve(nodes);
    }

    #[inline]
    pub(crate) fn add(&mut self, node: u32, sum: A) {
        self.sums[node as usize].add_sum(sum);
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
        self.sums.push(A::default());
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

    /// The finished tree. Nodes without any value are left out.
    pub(crate) fn finish(self) -> FlameTree {
        let mut total: Vec<i64> = self.sums.iter().map(|sum| sum.rounded()).collect();
        let mut is_used: Vec<bool> = total.iter().map(|&value| value != 0).collect();
        let ranks = self.name_ranks();
        // Children are younger than their parents, so one pass from the youngest sums everything.
        for node in (1..self.links.len()).rev() {
            let parent = self.links[node].parent as usize;
            total[parent] = total[parent].saturating_add(total[node]);
            is_used[parent] |= is_used[node];
        }
        let count = is_used.iter().filter(|&&is_used| is_used).count().max(1);
        let mut tree = FlameTree {
            frame: Vec::with_capacity(count),
            depth: Vec::with_capacity(count),
            subtree_end: Vec::with_capacity(count),
            total: Vec::with_capacity(count),
            self_value: Vec::with_capacity(count),
            ..FlameTree::default()
        };
        let mut pending: Vec<(u32, u16)> = vec![(Self::ROOT, 0)];
        let mut open: Vec<u32> = Vec::new();
        while let Some((node, depth)) = pending.pop() {
            let index = tree.frame.len() as u32;
            for closed in open.drain(usize::from(depth)..) {
                tree.subtree_end[closed as usize] = index;
            }
            open.push(index);
            tree.frame.push(self.links[node as usize].frame);
            tree.depth.push(depth);
            tree.subtree_end.push(0);
            tree.total.push(total[node as usize]);
            tree.self_value.push(self.sums[node as usize].rounded());
            let first = pending.len();
            let mut child = self.links[node as usize].child;
            while child != NONE {
                if is_used[child as usize] {
                    pending.push((child, depth + 1));
                }
                child = self.links[child as usize].sibling;
            }
            if pending.len() - first > 1 {
                self.sort_lightest_first(&mut pending[first..], &total, &ranks);
            }
        }
        for closed in open {
            tree.subtree_end[closed as usize] = tree.frame.len() as u32;
        }
        tree.frames = self.frames;
        tree
    }

    /// The place of each frame among all, by name. Equal weights are common (rare stacks were all
    /// seen once), and comparing texts for each of them would cost more than everything else.
    fn name_ranks(&self) -> Vec<u32> {
        let count = self.frames.frames().len() as u32;
        let mut by_name: Vec<FrameId> = (0..count).map(FrameId).collect();
        by_name.sort_unstable_by_key(|&frame| (self.frames.name(frame), frame));
        let mut ranks = vec![0; by_name.len()];
        for (rank, frame) in by_name.into_iter().enumerate() {
            ranks[frame.index()] = rank as u32;
        }
        ranks
    }

    /// For a stack from whose end the heaviest is taken first; equal ones by name.
    fn sort_lightest_first(&self, siblings: &mut [(u32, u16)], total: &[i64], ranks: &[u32]) {
        siblings.sort_unstable_by_key(|&(node, _)| {
            let rank = ranks[self.links[node as usize].frame.index()];
            let weight = total[node as usize].unsigned_abs();
            (weight, std::cmp::Reverse((rank, node)))
        });
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
            )
        ) {
            let mut trie = Trie::<i64>::new();
            let mut builder = FlameTreeBuilder::new();
            for (stack, value) in stacks {
                let mut node = Trie::<i64>::ROOT;
                for &number in &stack {
                    let frame = frame(&mut trie.frames, number);
                    node = trie.child(node, frame);
                }
                trie.add(node, value);
                let frames: Vec<FrameId> = stack
                    .iter()
                    .map(|&number| frame(&mut builder.frames, number))
                    .collect();
                builder.add_stack(frames, value);
            }
            let (tree, expected) = (trie.finish(), builder.finish());
            prop_assert_eq!(tree.frame, expected.frame);
            prop_assert_eq!(tree.depth, expected.depth);
            prop_assert_eq!(tree.subtree_end, expected.subtree_end);
            prop_assert_eq!(tree.total, expected.total);
            prop_assert_eq!(tree.self_value, expected.self_value);
        }
    }
}
