//! `collapse`: several frames of a stack become one, whatever lies below.

use hashbrown::HashMap;

use super::FilterError;
use super::FilterKind;
use super::frame::FramePattern;
use super::texts_of;
use crate::flame_builder::FlameTreeBuilder;
use crate::flame_builder::NodeId;
use crate::flame_tree::FlameTree;
use crate::flame_tree::FrameId;
use crate::flame_tree::FrameTable;

const RECURSION: &str = "recursion";

/// What is folded.
#[derive(Clone, Debug)]
pub(super) enum Collapse {
    /// A stack that comes back to a function goes on from where it was there first; what was called
    /// in between is left out. `None` is any function.
    Recursion(Option<FramePattern>),
    /// Neighbours that the pattern puts together.
    Neighbours(FramePattern),
}

/// What happens to each frame of a table.
#[derive(Debug)]
pub(super) struct Folds {
    is_recursion: bool,
    /// The frame that stands for it; `None` for one that stays.
    shown_as: Vec<Option<FrameId>>,
    /// Of frames that stand for others, what they stand for: neighbours of one group are one.
    group_of: Vec<Option<u32>>,
}

impl Collapse {
    pub(super) fn new(text: &str, size_limit: usize) -> Result<Self, FilterError> {
        let pattern = |text| FramePattern::new(FilterKind::Collapse, text, size_limit);
        if text == RECURSION {
            return Ok(Self::Recursion(None));
        }
        if let Some(of) = text.strip_prefix("recursion:") {
            return Ok(Self::Recursion(Some(pattern(of)?)));
        }
        if text.is_empty() {
            return Err(FilterError::Pattern {
                kind: FilterKind::Collapse.name(),
                pattern: String::new(),
                reason: "say what: recursion, or a pattern of frames as pkg:REGEX".to_owned(),
            });
        }
        Ok(Self::Neighbours(pattern(text)?))
    }

    /// The tree with the frames folded. It must not be pruned.
    pub(super) fn apply(&self, tree: &FlameTree) -> FlameTree {
        let mut builder = FlameTreeBuilder::new();
        builder.frames = FrameTable::clone(&tree.frames);
        let folds = self.folds(&mut builder.frames);
        // By depth: where the path to the current node goes.
        let mut path = vec![FlameTreeBuilder::ROOT];
        for node in 0..tree.frame.len() {
            let depth = usize::from(tree.depth[node]);
            if node > 0 {
                path.truncate(depth);
                path.push(folds.place(&mut builder, path[depth - 1], tree.frame[node]));
            }
            builder.add(path[depth], tree.self_value[node]);
        }
        builder.finish()
    }

    /// What happens to the frames of a table, to which those are added that stand for others.
    pub(super) fn folds(&self, frames: &mut FrameTable) -> Folds {
        let count = frames.frames().len();
        match self {
            Self::Recursion(pattern) => {
                let is_match = |frame: &FrameId| {
                    let texts = texts_of(frames, frames.get(*frame));
                    pattern
                        .as_ref()
                        .is_none_or(|pattern| pattern.matches(&texts))
                };
                let ids = (0..count).map(|index| FrameId(index as u32));
                let shown_as: Vec<_> = ids.map(|id| Some(id).filter(is_match)).collect();
                Folds {
                    is_recursion: true,
                    group_of: shown_as.iter().map(|shown| shown.map(|id| id.0)).collect(),
                    shown_as,
                }
            }
            Self::Neighbours(pattern) => neighbours(pattern, frames),
        }
    }
}

fn neighbours(pattern: &FramePattern, frames: &mut FrameTable) -> Folds {
    let count = frames.frames().len();
    let mut groups: HashMap<String, u32> = HashMap::new();
    let mut shown_as: Vec<Option<FrameId>> = vec![None; count];
    let mut group_of = vec![None; count];
    for (index, shown_as) in shown_as.iter_mut().enumerate() {
        let own = FrameId(index as u32);
        let Some(group) = pattern.group(&texts_of(frames, frames.get(own))) else {
            continue;
        };
        let next = groups.len() as u32;
        let number = *groups.entry(group.key).or_insert(next);
        let shown = group.frame.map_or(own, |it| {
            frames.intern(&it.name, &it.file, &it.binary, it.kind, 0)
        });
        *shown_as = Some(shown);
        if group_of.len() <= shown.index() {
            group_of.resize(shown.index() + 1, None);
        }
        group_of[shown.index()] = Some(number);
    }
    Folds {
        is_recursion: false,
        shown_as,
        group_of,
    }
}

impl Folds {
    /// The frame that stands for this one.
    pub(super) fn shown_as(&self, frame: FrameId) -> FrameId {
        self.shown_as[frame.index()].unwrap_or(frame)
    }

    /// How far from the end of what is shown, innermost first, the frame is that this one folds
    /// into; `None` for one that is shown itself.
    pub(super) fn folds_into(
        &self,
        frame: FrameId,
        shown_innermost_first: impl Iterator<Item = FrameId>,
    ) -> Option<usize> {
        let shown_as = self.shown_as[frame.index()]?;
        let mut shown = shown_innermost_first;
        if self.is_recursion {
            return shown.position(|shown| shown == shown_as);
        }
        let group = |frame: FrameId| self.group_of.get(frame.index()).copied().flatten();
        (group(shown.next()?) == group(shown_as)).then_some(0)
    }

    /// Where a stack goes on from `parent` in what is shown.
    pub(super) fn place(
        &self,
        builder: &mut FlameTreeBuilder,
        parent: NodeId,
        frame: FrameId,
    ) -> NodeId {
        let frames = builder.path_up(parent).map(|(_, frame)| frame);
        let steps = self.folds_into(frame, frames);
        let folded = steps.and_then(|steps| Some(builder.path_up(parent).nth(steps)?.0));
        folded.unwrap_or_else(|| builder.child(parent, self.shown_as(frame)))
    }
}
