//! Filters of frames that see the same stacks one after the other, and the path behind them.

use super::FilterKind;
use super::frame::FramePattern;
use super::frame::FrameTexts;
use super::path::PathFrame;
use super::texts_of;
use crate::flame_builder::FlameTreeBuilder;
use crate::flame_builder::NodeId;
use crate::flame_tree::FlameTree;
use crate::flame_tree::FrameTable;

/// The bit of a stack that a filter has thrown out.
const REFUSED: u64 = 1 << 63;

/// Filters in their order, and the path.
#[derive(Clone, Debug, Default)]
pub(super) struct FrameStage {
    pub(super) filters: Vec<(FilterKind, FramePattern)>,
    pub(super) path: Vec<PathFrame>,
}

/// What is known of a stack at one of its frames, seen from the root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Walk {
    /// A bit for each filter that the path has satisfied, and [`REFUSED`].
    bits: u64,
    /// How many frames are shown so far.
    shown: usize,
}

/// Where a node of the tree went.
#[derive(Clone, Copy, Debug)]
struct Place {
    walk: Walk,
    node: NodeId,
}

impl FrameStage {
    /// Whether every stack passes as it is.
    pub(super) fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.path.is_empty()
    }

    /// Whether every stack counts, however it is shown.
    pub(super) fn counts_every_stack(&self) -> bool {
        let mut kinds = self.filters.iter().map(|(kind, _)| kind);
        let takes_frames_only =
            kinds.all(|kind| matches!(kind, FilterKind::Hide | FilterKind::Show));
        takes_frames_only && self.path.is_empty()
    }

    /// The tree of the stacks that count, with the frames that are shown.
    pub(super) fn apply(&self, tree: FlameTree) -> FlameTree {
        if self.is_empty() {
            return tree;
        }
        let matches = self.matches_by_frame(&tree.frames);
        let mut builder = FlameTreeBuilder::new();
        builder.frames = FrameTable::clone(&tree.frames);
        // By depth: where the path to the current node goes.
        let mut path = vec![Place {
            walk: Walk::default(),
            node: FlameTreeBuilder::ROOT,
        }];
        let mut node = 0;
        while node < tree.frame.len() {
            let depth = usize::from(tree.depth[node]);
            if node > 0 {
                path.truncate(depth);
                let above = path[depth - 1];
                let frame = tree.frame[node];
                let is_frame =
                    |wanted: &PathFrame| wanted.is(&texts_of(&tree.frames, tree.frames.get(frame)));
                let (walk, is_shown) = self.step(above.walk, matches[frame.index()], is_frame);
                if walk.is_refused() {
                    node = tree.subtree_end[node] as usize;
                    continue;
                }
                let node = if is_shown {
                    builder.child(above.node, frame)
                } else {
                    above.node
                };
                path.push(Place { walk, node });
            }
            let place = path[depth];
            if self.counts(place.walk) {
                builder.add(place.node, tree.self_value[node]);
            }
            node += 1;
        }
        builder.finish()
    }

    /// For each frame a bit for each filter that it matches.
    pub(super) fn matches_by_frame(&self, frames: &FrameTable) -> Vec<u64> {
        let bits = |frame| self.matches(&texts_of(frames, frame));
        frames.frames().iter().map(bits).collect()
    }

    /// A bit for each filter that the frame matches.
    pub(super) fn matches(&self, frame: &FrameTexts<'_>) -> u64 {
        let filters = self.filters.iter().enumerate();
        filters
            .filter(|(_, (_, pattern))| pattern.matches(frame))
            .fold(0, |bits, (position, _)| bits | 1 << position)
    }

    /// Whether a stack that ends here counts: all that ask for a match have had one.
    pub(super) fn counts(&self, walk: Walk) -> bool {
        let filters = self.filters.iter().enumerate();
        let wanted = filters
            .filter(|(_, (kind, _))| matches!(kind, FilterKind::Focus | FilterKind::ShowFrom))
            .fold(0, |bits, (position, _)| bits | 1 << position);
        walk.bits == wanted && walk.shown >= self.path.len()
    }

    /// What is known behind a frame that matches these filters, and whether the frame is shown.
    /// `is_frame` says whether it is the frame of a path.
    pub(super) fn step(
        &self,
        walk: Walk,
        matches: u64,
        is_frame: impl FnOnce(&PathFrame) -> bool,
    ) -> (Walk, bool) {
        if walk.is_refused() {
            return (walk, false);
        }
        let mut walk = walk;
        for (position, (kind, _)) in self.filters.iter().enumerate() {
            let bit = 1 << position;
            let is_match = matches & bit != 0;
            match kind {
                FilterKind::Ignore if is_match => return (Walk::REFUSED, false),
                FilterKind::Focus if is_match => walk.bits |= bit,
                FilterKind::Hide if is_match => return (walk, false),
                FilterKind::Show if !is_match => return (walk, false),
                FilterKind::ShowFrom if is_match => walk.bits |= bit,
                FilterKind::ShowFrom if walk.bits & bit == 0 => return (walk, false),
                _ => {}
            }
        }
        if !self.path.get(walk.shown).is_none_or(is_frame) {
            return (Walk::REFUSED, false);
        }
        walk.shown += 1;
        (walk, true)
    }
}

impl Walk {
    const REFUSED: Self = Self {
        bits: REFUSED,
        shown: 0,
    };

    pub(super) fn is_refused(self) -> bool {
        self == Self::REFUSED
    }
}
