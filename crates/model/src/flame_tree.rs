//! The flame tree: merged stacks as pre-order columns.

use std::sync::Arc;

use crate::frame_kind::FrameKind;
use crate::ids::StringId;
use crate::interner::PositionIndex;
use crate::strings::StringTable;

/// A frame in a [`FrameTable`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// What flame trees merge by: a function of a binary. Lines are not part of it: two lines of one
/// function are one box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function's name, or `binary+0xaddress` without symbols.
    pub name: StringId,
    /// The source file.
    pub file: StringId,
    /// The path of the binary.
    pub mapping: StringId,
    /// The kind of code.
    pub kind: FrameKind,
    /// First line of the function; 0 when unknown.
    pub start_line: u32,
}

/// Each distinct frame once. Frame 0 is the root, named `total`.
#[derive(Clone, Debug)]
pub struct FrameTable {
    /// The texts of the frames.
    pub strings: StringTable,
    frames: Vec<Frame>,
    index: PositionIndex,
}

/// Merged stacks. One entry a node in each column, in pre-order, children by total with the
/// heaviest first; node 0 is the root and holds everything.
#[derive(Clone, Debug, Default)]
pub struct FlameTree {
    /// The frames that nodes refer to; trees of the same stacks share them.
    pub frames: Arc<FrameTable>,
    /// The frame of each node.
    pub frame: Vec<FrameId>,
    /// Distance to the root, which is 0.
    pub depth: Vec<u16>,
    /// Index behind the last node of the node's subtree.
    pub subtree_end: Vec<u32>,
    /// Value of all stacks through the node.
    pub total: Vec<i64>,
    /// Value of the stacks that end at the node.
    pub self_value: Vec<i64>,
    /// How many nodes pruning folded into `other` nodes.
    pub pruned_nodes: usize,
}

/// A row of the function table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionRow {
    /// The function.
    pub frame: FrameId,
    /// Value of the stacks whose leaf it is.
    pub self_value: i64,
    /// Value of the stacks in which it occurs, each counted once however often it recurs.
    pub total: i64,
}

impl FrameId {
    /// The position in its table.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Default for FrameTable {
    fn default() -> Self {
        let mut table = Self {
            strings: StringTable::default(),
            frames: Vec::new(),
            index: PositionIndex::default(),
        };
        table.intern("total", "", "", FrameKind::Unknown, 0);
        table
    }
}

impl FrameTable {
    /// The id of the root frame.
    pub const ROOT: FrameId = FrameId(0);

    /// The id of a frame given by its texts.
    pub fn intern(
        &mut self,
        name: &str,
        file: &str,
        mapping: &str,
        kind: FrameKind,
        start_line: u32,
    ) -> FrameId {
        let frame = Frame {
            name: self.strings.intern(name),
            file: self.strings.intern(file),
            mapping: self.strings.intern(mapping),
            kind,
            start_line,
        };
        let hash = self.index.seed().hash_words([
            u64::from(frame.name.0) << 32 | u64::from(frame.file.0),
            u64::from(frame.mapping.0) << 32 | u64::from(frame.start_line),
            u64::from(frame.kind as u8),
        ]);
        let frames = &self.frames;
        let (position, is_new) = self
            .index
            .find_or_insert(hash, frames.len(), |i| frames[i] == frame);
        if is_new {
            self.frames.push(frame);
        }
        FrameId(position)
    }

    /// The id here of a frame of another table.
    pub fn intern_from(&mut self, other: &Self, id: FrameId) -> FrameId {
        let frame = other.get(id);
        let text = |id| other.strings.get(id);
        self.intern(
            text(frame.name),
            text(frame.file),
            text(frame.mapping),
            frame.kind,
            frame.start_line,
        )
    }

    /// The frame with this id.
    #[inline]
    #[must_use]
    pub fn get(&self, id: FrameId) -> &Frame {
        &self.frames[id.index()]
    }

    /// Estimated bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.frames) + self.strings.text_bytes()
    }

    /// The name of a frame.
    #[must_use]
    pub fn name(&self, id: FrameId) -> &str {
        self.strings.get(self.get(id).name)
    }

    /// All frames in the order of their ids.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }
}

/// For each node of a pre-order, given by depths, the index behind the last node of its subtree.
pub(crate) fn subtree_ends(depths: &[u16]) -> Vec<u32> {
    let mut ends = vec![depths.len() as u32; depths.len()];
    let mut open: Vec<usize> = Vec::new();
    for (node, &depth) in depths.iter().enumerate() {
        while let Some(closed) = open.pop_if(|top| depths[*top] >= depth) {
            ends[closed] = node as u32;
        }
        open.push(node);
    }
    ends
}

impl FlameTree {
    /// Number of nodes, the root included; 0 only for `FlameTree::default()`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frame.len()
    }

    /// Whether no value was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }

    /// Estimated bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let node =
            size_of::<FrameId>() + size_of::<u16>() + size_of::<u32>() + 2 * size_of::<i64>();
        self.len() * node + self.frames.bytes()
    }

    /// The value of everything.
    #[must_use]
    pub fn root_total(&self) -> i64 {
        self.total.first().copied().unwrap_or(0)
    }

    /// The nodes directly below `node`, heaviest first.
    pub fn children(&self, node: usize) -> impl Iterator<Item = usize> {
        let end = self.subtree_end[node] as usize;
        let mut next = node + 1;
        std::iter::from_fn(move || {
            if next >= end {
                return None;
            }
            let child = next;
            next = self.subtree_end[child] as usize;
            Some(child)
        })
    }

    /// Self and total of every function, the largest self first. Exact on an unpruned tree, so it
    /// is computed before pruning (invariant 5).
    #[must_use]
    pub fn function_table(&self) -> Vec<FunctionRow> {
        let frame_count = self.frames.frames().len();
        let mut self_of = vec![0_i64; frame_count];
        let mut total_of = vec![0_i64; frame_count];
        // A frame that is already on the path has counted this subtree: recursion adds nothing.
        let mut on_path = vec![0_u32; frame_count];
        let mut path: Vec<(FrameId, u32)> = Vec::new();
        for node in 1..self.len() {
            while path.last().is_some_and(|&(_, end)| end as usize <= node) {
                let (frame, _) = path.pop().expect("the loop condition saw an entry");
                on_path[frame.index()] -= 1;
            }
            let frame = self.frame[node];
            let self_value = &mut self_of[frame.index()];
            *self_value = self_value.saturating_add(self.self_value[node]);
            if on_path[frame.index()] == 0 {
                let total = &mut total_of[frame.index()];
                *total = total.saturating_add(self.total[node]);
            }
            on_path[frame.index()] += 1;
            path.push((frame, self.subtree_end[node]));
        }
        let mut rows: Vec<FunctionRow> = (1..frame_count)
            .map(|index| FunctionRow {
                frame: FrameId(index as u32),
                self_value: self_of[index],
                total: total_of[index],
            })
            .filter(|row| row.self_value != 0 || row.total != 0)
            .collect();
        rows.sort_by(|left, right| {
            let by_value = (right.self_value, right.total).cmp(&(left.self_value, left.total));
            by_value.then_with(|| {
                self.frames
                    .name(left.frame)
                    .cmp(self.frames.name(right.frame))
            })
        });
        rows
    }

    /// Each path from below the root to a node with self value, as frames root first. The value of
    /// samples without any frame belongs to the root, whose path is empty.
    pub fn for_each_stack(&self, mut visit: impl FnMut(&[FrameId], i64)) {
        let mut path: Vec<FrameId> = Vec::new();
        for node in 0..self.len() {
            if node != 0 {
                path.truncate(usize::from(self.depth[node]) - 1);
                path.push(self.frame[node]);
            }
            if self.self_value[node] != 0 {
                visit(&path, self.self_value[node]);
            }
        }
    }

    /// The same as [`FlameTree::pruned`], without a copy of a tree that has no more.
    #[must_use]
    pub fn into_pruned(self, max_nodes: usize) -> Self {
        if max_nodes == 0 || self.len() <= max_nodes {
            return self;
        }
        self.pruned(max_nodes)
    }

    /// A tree of at most `max_nodes` nodes (0: all) with the same totals: of each parent's cut
    /// children the value moves into one child named `other`. The heaviest nodes stay; `other`
    /// nodes come on top of the count.
    #[must_use]
    pub fn pruned(&self, max_nodes: usize) -> Self {
        if max_nodes == 0 || self.len() <= max_nodes {
            return self.clone();
        }
        let (threshold, mut ties_left) = self.threshold_of_rank(max_nodes);
        let mut pruned = Self {
            frames: Arc::clone(&self.frames),
            pruned_nodes: self.pruned_nodes,
            ..Self::default()
        };
        let other = Arc::make_mut(&mut pruned.frames).intern("other", "", "", FrameKind::Other, 0);
        let mut open: Vec<(usize, i64)> = Vec::new();
        let mut node = 0;
        while node < self.len() {
            self.close_until(&mut pruned, &mut open, node, other);
            let magnitude = self.total[node].unsigned_abs();
            let is_tie = node != 0 && magnitude == threshold;
            let is_kept = node == 0 || magnitude > threshold || (is_tie && ties_left > 0);
            if is_kept && is_tie {
                ties_left -= 1;
            }
            if is_kept {
                pruned.push_node(
                    self.frame[node],
                    self.depth[node],
                    self.total[node],
                    self.self_value[node],
                );
                open.push((node, 0));
                node += 1;
                continue;
            }
            let parent = open.last_mut().expect("the root stays open until the end");
            parent.1 = parent.1.saturating_add(self.total[node]);
            let end = self.subtree_end[node] as usize;
            pruned.pruned_nodes += end - node;
            node = end;
        }
        self.close_until(&mut pruned, &mut open, self.len(), other);
        pruned.compute_subtree_ends();
        pruned
    }

    /// Ends all open nodes whose subtree ends at or before `next`, writing what was cut from them.
    fn close_until(
        &self,
        pruned: &mut Self,
        open: &mut Vec<(usize, i64)>,
        next: usize,
        other: FrameId,
    ) {
        while let Some(&(node, cut)) = open.last() {
            if self.subtree_end[node] as usize > next {
                return;
            }
            open.pop();
            if cut != 0 {
                pruned.push_node(other, self.depth[node] + 1, cut, cut);
            }
        }
    }

    pub(crate) fn push_node(&mut self, frame: FrameId, depth: u16, total: i64, self_value: i64) {
        self.frame.push(frame);
        self.depth.push(depth);
        self.subtree_end.push(0);
        self.total.push(total);
        self.self_value.push(self_value);
    }

    pub(crate) fn compute_subtree_ends(&mut self) {
        self.subtree_end = subtree_ends(&self.depth);
    }

    /// The magnitude of the `rank`-th heaviest node, and how many nodes of just that magnitude may
    /// stay. A parent is never lighter than a child while values have one sign, and comes before
    /// it in pre-order, so what stays is connected even if ties are cut in the middle.
    fn threshold_of_rank(&self, rank: usize) -> (u64, usize) {
        let mut magnitudes: Vec<u64> = self.total[1..]
            .iter()
            .map(|value| value.unsigned_abs())
            .collect();
        // The root stays whatever it weighs, so it takes one place.
        let places = rank - 1;
        if places == 0 {
            return (u64::MAX, 0);
        }
        let (_, &mut threshold, _) =
            magnitudes.select_nth_unstable_by(places - 1, |left, right| right.cmp(left));
        let heavier = magnitudes
            .iter()
            .filter(|&&value| value > threshold)
            .count();
        (threshold, places - heavier)
    }
}
