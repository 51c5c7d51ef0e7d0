//! What calls a function, and what it calls.

use std::sync::Arc;

use crate::flame_builder::FlameTreeBuilder;
use crate::flame_tree::FlameTree;
use crate::flame_tree::FrameId;

impl FlameTree {
    /// Everything below a set of functions, merged: stacks from the outermost such function on.
    /// Recursion counts once, so the total is that of the function table.
    #[must_use]
    pub fn callees(&self, is_wanted: impl Fn(FrameId) -> bool) -> Self {
        self.sides_of(is_wanted, |path, outermost, builder, value| {
            builder.add_stack(path[outermost..].iter().copied(), value);
        })
    }

    /// Everything above a set of functions, merged and turned around: each is a child of the root,
    /// its callers are below it. As in [`FlameTree::callees`], the outermost one of a stack counts.
    #[must_use]
    pub fn callers(&self, is_wanted: impl Fn(FrameId) -> bool) -> Self {
        self.sides_of(is_wanted, |path, outermost, builder, value| {
            builder.add_stack(path[..=outermost].iter().rev().copied(), value);
        })
    }

    fn sides_of(
        &self,
        is_wanted: impl Fn(FrameId) -> bool,
        mut add: impl FnMut(&[FrameId], usize, &mut FlameTreeBuilder, i64),
    ) -> Self {
        let wanted: Vec<bool> = (0..self.frames.frames().len() as u32)
            .map(|frame| is_wanted(FrameId(frame)))
            .collect();
        let mut builder = FlameTreeBuilder::new();
        builder.frames = (*self.frames).clone();
        self.for_each_stack(|path, value| {
            if let Some(outermost) = path.iter().position(|frame| wanted[frame.index()]) {
                add(path, outermost, &mut builder, value);
            }
        });
        let mut tree = builder.finish();
        tree.frames = Arc::clone(&self.frames);
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame_kind::FrameKind;

    fn example() -> FlameTree {
        let mut builder = FlameTreeBuilder::new();
        for (names, value) in [
            ("main;serve;parse;alloc", 5),
            ("main;serve;parse", 2),
            ("worker;parse;parse;alloc", 3),
            ("main;gc", 1),
        ] {
            let frames: Vec<_> = names
                .split(';')
                .map(|name| builder.frames.intern(name, "", "", FrameKind::Go, 0))
                .collect();
            builder.add_stack(frames, value);
        }
        builder.finish()
    }

    fn lines(tree: &FlameTree) -> Vec<String> {
        let rows = (0..tree.len()).map(|node| {
            let name = tree.frames.name(tree.frame[node]);
            let indent = " ".repeat(tree.depth[node].into());
            format!(
                "{indent}{name} {}/{}",
                tree.total[node], tree.self_value[node]
            )
        });
        rows.collect()
    }

    #[test]
    fn callees_of_a_recursive_function() {
        let tree = example();
        let below = tree.callees(|frame| tree.frames.name(frame) == "parse");
        assert_eq!(
            lines(&below),
            [
                "total 10/0",
                " parse 10/2",
                "  alloc 5/5",
                "  parse 3/0",
                "   alloc 3/3",
            ]
        );
    }

    #[test]
    fn callers_are_turned_around() {
        let tree = example();
        let above = tree.callers(|frame| tree.frames.name(frame) == "parse");
        assert_eq!(
            lines(&above),
            [
                "total 10/0",
                " parse 10/0",
                "  serve 7/0",
                "   main 7/7",
                "  worker 3/3",
            ]
        );
        assert_eq!(lines(&tree.callers(|_| false)), ["total 0/0"]);
    }
}
