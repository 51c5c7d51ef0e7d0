//! The same filters over the nodes of a tree that stays as it is.

use super::Filters;
use super::collapse::Collapse;
use super::path::PathFrame;
use super::stage::FrameStage;
use super::stage::Walk;
use super::texts_of;
use crate::flame_builder::FlameTreeBuilder;
use crate::flame_builder::NodeId;
use crate::flame_tree::FrameId;
use crate::flame_tree::FrameTable;

/// What filters make of the nodes of a tree.
#[derive(Clone, Debug)]
pub struct ShownNodes {
    shown: FlameTreeBuilder,
    /// For each node of the tree where stacks that end there end in what is shown; `None` for those
    /// that do not count.
    ends: Vec<Option<NodeId>>,
}

impl ShownNodes {
    /// Whether the stacks that end at a node count.
    #[must_use]
    pub fn counts(&self, node: usize) -> bool {
        self.ends[node].is_some()
    }

    /// The frames that are shown of the stacks that end at a node, innermost first; none of those
    /// that do not count. What a frame had that is not shown is its caller's.
    pub fn frames(&self, node: usize) -> impl Iterator<Item = FrameId> + '_ {
        let end = self.ends[node].unwrap_or(FlameTreeBuilder::ROOT);
        self.shown.path_up(end).map(|(_, frame)| frame)
    }

    /// How many nodes what is shown has.
    #[must_use]
    pub fn shown_count(&self) -> usize {
        self.shown.len()
    }
}

impl Filters {
    /// What they make of each node of a tree. Parents come before their children, node 0 is the root,
    /// and `node` gives the parent and the frame of another one. Frames that stand for others are
    /// added to `frames`.
    #[must_use]
    pub fn shown_nodes(
        &self,
        frames: &mut FrameTable,
        count: usize,
        node: impl Fn(usize) -> (usize, FrameId),
    ) -> ShownNodes {
        let mut now = plain_nodes(count, node);
        for (stage, collapse) in &self.before_last {
            now = collapsed(collapse, frames, &passed(stage, frames, &now));
        }
        passed(&self.last, frames, &now)
    }

    /// For each node of a tree whether a stack that ends there counts, as for [`Self::shown_nodes`].
    #[must_use]
    pub fn counting_nodes(
        &self,
        frames: &FrameTable,
        count: usize,
        node: impl Fn(usize) -> (usize, FrameId),
    ) -> Vec<bool> {
        if self.counts_every_stack() {
            return vec![true; count];
        }
        let nodes = self.shown_nodes(&mut frames.clone(), count, node);
        nodes.ends.iter().map(Option::is_some).collect()
    }
}

/// All of them, as they are.
fn plain_nodes(count: usize, node: impl Fn(usize) -> (usize, FrameId)) -> ShownNodes {
    let mut shown = FlameTreeBuilder::new();
    let mut ends = Vec::with_capacity(count);
    ends.resize(count.min(1), Some(FlameTreeBuilder::ROOT));
    for index in 1..count {
        let (parent, frame) = node(index);
        let above = ends[parent].unwrap_or(FlameTreeBuilder::ROOT);
        ends.push(Some(shown.child(above, frame)));
    }
    ShownNodes { shown, ends }
}

/// What filters leave of what is shown.
fn passed(stage: &FrameStage, frames: &FrameTable, before: &ShownNodes) -> ShownNodes {
    let matches = stage.matches_by_frame(frames);
    let mut shown = FlameTreeBuilder::new();
    let mut places = vec![(Walk::default(), FlameTreeBuilder::ROOT)];
    for (parent, frame) in before.shown.nodes() {
        let is_frame = |wanted: &PathFrame| wanted.is(&texts_of(frames, frames.get(frame)));
        let (walk, above) = places[parent];
        let (walk, is_shown) = stage.step(walk, matches[frame.index()], is_frame);
        let place = if is_shown {
            shown.child(above, frame)
        } else {
            above
        };
        places.push((walk, place));
    }
    let end = |before: NodeId| {
        let (walk, place) = places[before.0 as usize];
        stage.counts(walk).then_some(place)
    };
    ShownNodes {
        ends: before.ends.iter().map(|node| node.and_then(end)).collect(),
        shown,
    }
}

/// What is shown, folded.
fn collapsed(collapse: &Collapse, frames: &mut FrameTable, before: &ShownNodes) -> ShownNodes {
    let folds = collapse.folds(frames);
    let mut shown = FlameTreeBuilder::new();
    let mut places = vec![FlameTreeBuilder::ROOT];
    for (parent, frame) in before.shown.nodes() {
        places.push(folds.place(&mut shown, places[parent], frame));
    }
    let end = |before: NodeId| places[before.0 as usize];
    ShownNodes {
        ends: before.ends.iter().map(|node| node.map(end)).collect(),
        shown,
    }
}
