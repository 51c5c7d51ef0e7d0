//! What calls a function, and what it calls.

use candela_model::FlameTree;

use super::frame_key::FrameKey;

/// Nodes with less than this part of the function's value are left out.
const SMALLEST_PART: i64 = 200;

/// The functions that were looked at; the last is shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sandwich {
    shown: Vec<FrameKey>,
    /// The chosen line; the function itself where nobody has chosen.
    cursor: Option<usize>,
}

/// A line of the picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SandwichLine {
    pub(crate) side: Side,
    /// Steps from the function.
    pub(crate) depth: usize,
    pub(crate) function: FrameKey,
    pub(crate) total: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Caller,
    Function,
    Callee,
}

// === impl Sandwich ===

impl Sandwich {
    /// The function in the middle.
    pub(crate) fn function(&self) -> Option<&FrameKey> {
        self.shown.last()
    }

    pub(crate) fn show(&mut self, function: FrameKey) {
        if self.shown.last() != Some(&function) {
            self.shown.push(function);
        }
        self.cursor = None;
    }

    /// The function that was looked at before.
    pub(crate) fn back(&mut self) {
        if self.shown.len() > 1 {
            self.shown.pop();
            self.cursor = None;
        }
    }

    /// Callers, outermost first, then the function, then callees.
    pub(crate) fn lines(&self, tree: &FlameTree) -> Vec<SandwichLine> {
        let Some(function) = self.function() else {
            return Vec::new();
        };
        let is_function = |frame| function.matches(&tree.frames, frame);
        let callers = tree.callers(is_function);
        let callees = tree.callees(is_function);
        let mut lines = side_lines(&callers, Side::Caller);
        lines.reverse();
        lines.push(SandwichLine {
            side: Side::Function,
            depth: 0,
            function: function.clone(),
            total: callees.root_total(),
        });
        lines.extend(side_lines(&callees, Side::Callee));
        lines
    }

    /// The chosen line.
    pub(crate) fn chosen(&self, lines: &[SandwichLine]) -> Option<usize> {
        let last = lines.len().checked_sub(1)?;
        let chosen = self.cursor.map(|line| line.min(last));
        chosen.or_else(|| lines.iter().position(|line| line.side == Side::Function))
    }

    pub(crate) fn step(&mut self, lines: &[SandwichLine], distance: isize) {
        if let Some(here) = self.chosen(lines) {
            self.cursor = Some(here.saturating_add_signed(distance).min(lines.len() - 1));
        }
    }
}

/// Below the node of the function itself, which is the only one below the root.
fn side_lines(tree: &FlameTree, side: Side) -> Vec<SandwichLine> {
    let smallest = tree.root_total() / SMALLEST_PART;
    let mut lines = Vec::new();
    let mut node = 1;
    while node < tree.len() {
        let depth = usize::from(tree.depth[node]);
        if tree.total[node] < smallest {
            node = tree.subtree_end[node] as usize;
            continue;
        }
        if depth > 1 {
            lines.push(SandwichLine {
                side,
                depth: depth - 1,
                function: FrameKey::of(&tree.frames, tree.frame[node]),
                total: tree.total[node],
            });
        }
        node += 1;
    }
    lines
}
