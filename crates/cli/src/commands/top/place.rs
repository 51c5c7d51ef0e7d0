//! Where somebody is in a tree: the pictures of the flame graph and of the call tree share it.

use std::collections::HashSet;

use candela_model::FlameTree;

use super::frame_key::FrameKey;
use super::frame_key::follow;

/// A node that is below another by this share of the focused node is shown without being asked for.
const OPEN_SHARE: i64 = 10;

/// Which way to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Left,
    Down,
    Up,
    Right,
}

/// A place in a tree by names, so that it is the same in the next tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// From the root to the node that fills the width; empty for all.
    pub(crate) focus: Vec<FrameKey>,
    /// From there to the chosen node.
    pub(crate) cursor: Vec<FrameKey>,
    /// Nodes of the call tree that are open where they would be closed, or the other way around.
    toggled: HashSet<Vec<FrameKey>>,
}

/// A line of the call tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeLine {
    pub(crate) node: usize,
    /// Below the focused node.
    pub(crate) depth: usize,
    /// Whether what is below it is shown; none without anything below.
    pub(crate) is_open: Option<bool>,
}

// === impl Place ===

impl Place {
    /// The focused node; none when the last seconds have nothing of it.
    pub(crate) fn focused(&self, tree: &FlameTree) -> Option<usize> {
        let (node, found) = follow(tree, 0, &self.focus);
        (found == self.focus.len()).then_some(node)
    }

    /// The chosen node, or what there is of the way to it.
    pub(crate) fn chosen(&self, tree: &FlameTree) -> Option<usize> {
        let focused = self.focused(tree)?;
        Some(follow(tree, focused, &self.cursor).0)
    }

    /// Makes the chosen node fill the width.
    pub(crate) fn focus_on_chosen(&mut self, tree: &FlameTree) {
        let Some(focused) = self.focused(tree) else {
            return;
        };
        let (_, found) = follow(tree, focused, &self.cursor);
        self.cursor.truncate(found);
        self.focus.append(&mut self.cursor);
    }

    /// Makes the caller of the focused function fill the width; the chosen node stays.
    pub(crate) fn focus_out(&mut self) {
        if let Some(last) = self.focus.pop() {
            self.cursor.insert(0, last);
        }
    }

    /// A step in the flame graph: down to what was called, up to the caller, aside to its other callees.
    pub(crate) fn step_in_flame(&mut self, tree: &FlameTree, step: Step) {
        let Some(focused) = self.focused(tree) else {
            return;
        };
        let (node, found) = follow(tree, focused, &self.cursor);
        self.cursor.truncate(found);
        match step {
            Step::Up => {
                self.cursor.pop();
            }
            Step::Down => {
                if let Some(child) = tree.children(node).next() {
                    self.cursor
                        .push(FrameKey::of(&tree.frames, tree.frame[child]));
                }
            }
            Step::Left | Step::Right => {
                let Some(last) = self.cursor.pop() else {
                    return;
                };
                let parent = follow(tree, focused, &self.cursor).0;
                let siblings: Vec<usize> = tree.children(parent).collect();
                let here = siblings.iter().position(|&sibling| sibling == node);
                let wanted = match step {
                    Step::Left => here.and_then(|here| here.checked_sub(1)),
                    _ => here.map(|here| here + 1),
                };
                let sibling = wanted.and_then(|wanted| siblings.get(wanted));
                self.cursor.push(match sibling {
                    Some(&sibling) => FrameKey::of(&tree.frames, tree.frame[sibling]),
                    None => last,
                });
            }
        }
    }

    /// A step in the call tree: up and down its lines; right opens a node or goes into it, left closes it or
    /// leaves it.
    pub(crate) fn step_in_tree(&mut self, tree: &FlameTree, step: Step) {
        let lines = self.lines(tree);
        let Some(here) = self.line_of_chosen(tree, &lines) else {
            return;
        };
        self.go_to(tree, &lines, here);
        let line = lines[here];
        match step {
            Step::Up => self.go_to(tree, &lines, here.saturating_sub(1)),
            Step::Down => self.go_to(tree, &lines, (here + 1).min(lines.len() - 1)),
            Step::Right if line.is_open == Some(false) => self.toggle(),
            Step::Right if line.is_open == Some(true) => self.go_to(tree, &lines, here + 1),
            Step::Left if line.is_open == Some(true) => self.toggle(),
            Step::Left => {
                self.cursor.pop();
            }
            Step::Right => {}
        }
    }

    /// The nodes that the call tree shows, below the focused one and with it.
    pub(crate) fn lines(&self, tree: &FlameTree) -> Vec<TreeLine> {
        let Some(focused) = self.focused(tree) else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        let mut path = self.focus.clone();
        let end = tree.subtree_end[focused] as usize;
        let whole = tree.total[focused];
        let mut node = focused;
        while node < end {
            let depth = usize::from(tree.depth[node] - tree.depth[focused]);
            path.truncate(self.focus.len() + depth.saturating_sub(1));
            if depth > 0 {
                path.push(FrameKey::of(&tree.frames, tree.frame[node]));
            }
            let below_end = tree.subtree_end[node] as usize;
            let has_children = below_end > node + 1;
            let is_heavy = depth == 0 || tree.total[node] >= whole / OPEN_SHARE;
            let is_open = has_children.then(|| is_heavy != self.toggled.contains(&path));
            lines.push(TreeLine {
                node,
                depth,
                is_open,
            });
            node = if is_open == Some(true) {
                node + 1
            } else {
                below_end
            };
        }
        lines
    }

    /// The line of the chosen node, or of the nearest one around it that is shown.
    pub(crate) fn line_of_chosen(&self, tree: &FlameTree, lines: &[TreeLine]) -> Option<usize> {
        let chosen = self.chosen(tree)?;
        let holds =
            |line: &TreeLine| line.node <= chosen && chosen < tree.subtree_end[line.node] as usize;
        lines.iter().rposition(holds)
    }

    fn toggle(&mut self) {
        let path = [self.focus.as_slice(), &self.cursor].concat();
        if !self.toggled.remove(&path) {
            self.toggled.insert(path);
        }
    }

    fn go_to(&mut self, tree: &FlameTree, lines: &[TreeLine], wanted: usize) {
        let mut depth = lines[wanted].depth;
        let mut cursor = Vec::with_capacity(depth);
        for line in lines[..=wanted].iter().rev() {
            if depth == 0 {
                break;
            }
            if line.depth == depth {
                cursor.push(FrameKey::of(&tree.frames, tree.frame[line.node]));
                depth -= 1;
            }
        }
        cursor.reverse();
        self.cursor = cursor;
    }
}
