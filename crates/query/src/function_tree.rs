//! Stacks by function, in the order in which a flame tree is written.
//!
//! Trees of a million nodes are common, and what they cost is memory traffic. So everything here is
//! a pass over arrays: a parent stands before its children and a subtree is a range, which makes
//! the sums one pass from the back and the children of a node a walk over ranges.

use std::cmp::Reverse;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use candela_model::FlameTree;
use candela_model::FrameId;
use candela_model::FrameTable;

use crate::columns::Columns;

/// Nodes for which a thread of its own pays.
const NODES_PER_THREAD: usize = 100_000;
/// Subtrees up to this part of a thread's share are written as one piece.
const PIECES_PER_THREAD: usize = 8;

/// Distinct frames below each node, no values. Node 0 is the root.
#[derive(Debug)]
pub(crate) struct FunctionTree {
    frames: Arc<FrameTable>,
    /// By node. Columns of their own, as each pass needs only some of them.
    frame: Vec<FrameId>,
    /// The root's is itself.
    parent: Vec<u32>,
    /// Index behind the last node of the node's subtree.
    subtree_end: Vec<u32>,
    /// The place of each frame among all, by name.
    rank: Vec<u32>,
}

/// A subtree that one thread writes.
#[derive(Clone, Copy, Debug)]
struct Piece {
    node: u32,
    depth: u16,
    /// Where its first node goes.
    position: u32,
}

/// What a tree is written from.
struct Writer<'a> {
    tree: &'a FunctionTree,
    totals: &'a [i64],
    /// How many nodes of each subtree have a value, or one below them.
    used: &'a [u32],
}

impl FunctionTree {
    /// A tree from columns in pre-order.
    pub(crate) fn new(
        frames: FrameTable,
        frame: Vec<FrameId>,
        parent: Vec<u32>,
        subtree_end: Vec<u32>,
    ) -> Self {
        let rank = name_ranks(&frames);
        Self {
            frames: Arc::new(frames),
            frame,
            parent,
            subtree_end,
            rank,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.frame.len()
    }

    pub(crate) fn frames(&self) -> &FrameTable {
        &self.frames
    }

    pub(crate) fn frame(&self, node: usize) -> FrameId {
        self.frame[node]
    }

    pub(crate) fn parent(&self, node: usize) -> usize {
        self.parent[node] as usize
    }

    /// As many threads as pay for writing the whole tree here.
    pub(crate) fn useful_threads(&self) -> usize {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        cores.min(self.len() / NODES_PER_THREAD).max(1)
    }

    /// Estimated bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let frames = self.frames.frames().len() * 64 + self.frames.strings.text_bytes();
        self.len() * 12 + frames
    }

    /// The flame tree of the values that end at each node. Nodes without any value are left out.
    pub(crate) fn flame_tree(&self, self_values: Vec<i64>, threads: usize) -> FlameTree {
        let mut totals = self_values;
        let mut used: Vec<u32> = vec![0; totals.len()];
        for node in (1..totals.len()).rev() {
            if totals[node] == 0 && used[node] == 0 {
                continue;
            }
            // The values below may cancel out, but there is something to be seen.
            used[node] += 1;
            let parent = self.parent(node);
            totals[parent] = totals[parent].saturating_add(totals[node]);
            used[parent] += used[node];
        }
        used[0] += 1;
        let writer = Writer {
            tree: self,
            totals: &totals,
            used: &used,
        };
        writer.write(threads)
    }
}

impl Writer<'_> {
    fn write(&self, threads: usize) -> FlameTree {
        let count = self.used[0] as usize;
        let mut tree = FlameTree {
            frames: Arc::clone(&self.tree.frames),
            frame: vec![FrameTable::ROOT; count],
            depth: vec![0; count],
            subtree_end: vec![0; count],
            total: vec![0; count],
            self_value: vec![0; count],
            pruned_nodes: 0,
        };
        let mut columns = Columns::of(&mut tree);
        let root = Piece {
            node: 0,
            depth: 0,
            position: 0,
        };
        if threads == 1 {
            self.write_piece(root, &mut columns);
            return tree;
        }
        let pieces = self.split(root, count / (threads * PIECES_PER_THREAD), &mut columns);
        let share = count.div_ceil(threads) as u32;
        thread::scope(|scope| {
            let mut rest = columns;
            let mut offset = 0;
            for group in
                pieces.chunk_by(|one, other| one.position / share == other.position / share)
            {
                let last = group[group.len() - 1];
                let end = last.position + self.used[last.node as usize];
                let (mut own, behind) = rest.split_at((end - offset) as usize);
                let start = offset;
                (rest, offset) = (behind, end);
                scope.spawn(move || {
                    for &piece in group {
                        let from = (piece.position - start) as usize;
                        let to = from + self.used[piece.node as usize] as usize;
                        self.write_piece(piece, &mut own.range(from..to));
                    }
                });
            }
        });
        tree
    }

    /// Writes the nodes of large subtrees and gives back the small ones, in the order in which
    /// they are to be written.
    fn split(&self, root: Piece, largest: usize, columns: &mut Columns<'_>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut pending = vec![root];
        while let Some(piece) = pending.pop() {
            if (self.used[piece.node as usize] as usize) <= largest {
                pieces.push(piece);
                continue;
            }
            let first = pending.len();
            let below = self.push_children(piece, &mut pending);
            self.write_node(piece, below, piece.position, columns);
            // The heaviest child is the last one and comes first.
            let mut position = piece.position + 1;
            for child in pending[first..].iter_mut().rev() {
                child.position = position;
                position += self.used[child.node as usize];
            }
        }
        pieces
    }

    /// Writes a subtree to columns that begin with it.
    fn write_piece(&self, root: Piece, columns: &mut Columns<'_>) {
        let mut pending = vec![root];
        let mut next = root.position;
        while let Some(piece) = pending.pop() {
            let mut placed = Piece {
                position: next,
                ..piece
            };
            // Most nodes have one child, which needs no place in a queue.
            while let Some(child) = self.only_child(placed.node) {
                let below = self.totals[child as usize];
                self.write_node(placed, below, next - root.position, columns);
                next += 1;
                placed = Piece {
                    node: child,
                    depth: placed.depth.saturating_add(1),
                    position: next,
                };
            }
            let below = self.push_children(placed, &mut pending);
            self.write_node(placed, below, next - root.position, columns);
            next += 1;
        }
    }

    /// The child of a node that has one alone, if that is used.
    #[inline]
    fn only_child(&self, node: u32) -> Option<u32> {
        let child = node + 1;
        let end = self.tree.subtree_end[node as usize];
        let is_only = child < end && self.tree.subtree_end[child as usize] == end;
        (is_only && self.used[child as usize] > 0).then_some(child)
    }

    /// `below` is the total of the children: what is left of the node's own was sampled in it.
    #[inline]
    fn write_node(&self, piece: Piece, below: i64, index: u32, columns: &mut Columns<'_>) {
        let (node, index) = (piece.node as usize, index as usize);
        let total = self.totals[node];
        columns.frame[index] = self.tree.frame[node];
        columns.depth[index] = piece.depth;
        columns.subtree_end[index] = piece.position + self.used[node];
        columns.total[index] = total;
        columns.self_value[index] = total.saturating_sub(below);
    }

    /// Pushes the children that are used so that the heaviest is taken first, equal ones by name.
    /// Returns the sum of their totals.
    #[inline]
    fn push_children(&self, parent: Piece, pending: &mut Vec<Piece>) -> i64 {
        let tree = self.tree;
        let first = pending.len();
        let mut below = 0_i64;
        let end = tree.subtree_end[parent.node as usize];
        let mut child = parent.node + 1;
        while child < end {
            if self.used[child as usize] > 0 {
                below = below.saturating_add(self.totals[child as usize]);
                pending.push(Piece {
                    node: child,
                    depth: parent.depth.saturating_add(1),
                    position: 0,
                });
            }
            child = tree.subtree_end[child as usize];
        }
        if pending.len() - first > 1 {
            pending[first..].reverse();
            pending[first..].sort_unstable_by_key(|piece| {
                let weight = self.totals[piece.node as usize].unsigned_abs();
                let rank = tree.rank[tree.frame[piece.node as usize].index()];
                (weight, Reverse((rank, piece.node)))
            });
        }
        below
    }
}

/// The place of each frame among all, by name. Equal weights are common (rare stacks were all seen
/// once), and comparing texts for each of them would cost more than everything else.
fn name_ranks(frames: &FrameTable) -> Vec<u32> {
    let count = frames.frames().len() as u32;
    let mut by_name: Vec<FrameId> = (0..count).map(FrameId).collect();
    by_name.sort_unstable_by_key(|&frame| (frames.name(frame), frame));
    let mut ranks = vec![0; by_name.len()];
    for (rank, frame) in by_name.into_iter().enumerate() {
        ranks[frame.index()] = rank as u32;
    }
    ranks
}
