//! What stays the same of a function from one tree to the next, whose ids are others.

use candela_model::FlameTree;
use candela_model::FrameId;
use candela_model::FrameKind;
use candela_model::FrameTable;

/// A function by what tells it from others of its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FrameKey {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) mapping: String,
    pub(crate) kind: FrameKind,
    pub(crate) start_line: u32,
}

// === impl FrameKey ===

impl FrameKey {
    pub(crate) fn of(frames: &FrameTable, id: FrameId) -> Self {
        let frame = frames.get(id);
        let text = |id| frames.strings.get(id).to_owned();
        Self {
            name: text(frame.name),
            file: text(frame.file),
            mapping: text(frame.mapping),
            kind: frame.kind,
            start_line: frame.start_line,
        }
    }

    pub(crate) fn matches(&self, frames: &FrameTable, id: FrameId) -> bool {
        let frame = frames.get(id);
        let is_equal = |id, text: &str| frames.strings.get(id) == text;
        is_equal(frame.name, &self.name)
            && is_equal(frame.file, &self.file)
            && is_equal(frame.mapping, &self.mapping)
            && (frame.kind, frame.start_line) == (self.kind, self.start_line)
    }
}

/// The node at the end of a path from below `from`, and how much of the path there is.
pub(crate) fn follow(tree: &FlameTree, from: usize, path: &[FrameKey]) -> (usize, usize) {
    let mut node = from;
    for (depth, key) in path.iter().enumerate() {
        let found = tree
            .children(node)
            .find(|&child| key.matches(&tree.frames, tree.frame[child]));
        match found {
            Some(child) => node = child,
            None => return (node, depth),
        }
    }
    (node, path.len())
}
