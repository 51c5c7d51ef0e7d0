//! Parts of a flame tree's columns, for threads that write it together.

use std::ops::Range;

use candela_model::FlameTree;
use candela_model::FrameId;

/// The same range of every column.
#[derive(Debug)]
pub(crate) struct Columns<'a> {
    pub(crate) frame: &'a mut [FrameId],
    pub(crate) depth: &'a mut [u16],
    pub(crate) subtree_end: &'a mut [u32],
    pub(crate) total: &'a mut [i64],
    pub(crate) self_value: &'a mut [i64],
}

impl<'a> Columns<'a> {
    pub(crate) fn of(tree: &'a mut FlameTree) -> Self {
        Self {
            frame: &mut tree.frame,
            depth: &mut tree.depth,
            subtree_end: &mut tree.subtree_end,
            total: &mut tree.total,
            self_value: &mut tree.self_value,
        }
    }

    /// What comes before `middle`, and the rest.
    pub(crate) fn split_at(self, middle: usize) -> (Self, Self) {
        let (frame, later_frame) = self.frame.split_at_mut(middle);
        let (depth, later_depth) = self.depth.split_at_mut(middle);
        let (subtree_end, later_subtree_end) = self.subtree_end.split_at_mut(middle);
        let (total, later_total) = self.total.split_at_mut(middle);
        let (self_value, later_self_value) = self.self_value.split_at_mut(middle);
        let before = Self {
            frame,
            depth,
            subtree_end,
            total,
            self_value,
        };
        let behind = Self {
            frame: later_frame,
            depth: later_depth,
            subtree_end: later_subtree_end,
            total: later_total,
            self_value: later_self_value,
        };
        (before, behind)
    }

    pub(crate) fn range(&mut self, range: Range<usize>) -> Columns<'_> {
        Columns {
            frame: &mut self.frame[range.clone()],
            depth: &mut self.depth[range.clone()],
            subtree_end: &mut self.subtree_end[range.clone()],
            total: &mut self.total[range.clone()],
            self_value: &mut self.self_value[range],
        }
    }
}
