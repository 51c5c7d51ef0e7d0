//! Where stacks end in a tree that is there.

use hashbrown::HashMap;

use crate::flame_diff::FlameDiff;
use crate::flame_tree::FrameId;
use crate::flame_tree::FrameTable;

/// The heaviest nodes of a union of two trees by the way to them: places. They are numbered in pre-order.
#[derive(Clone, Debug, Default)]
pub struct NodePlaces {
    /// The frames of the tree: whoever looks for a stack has its frames in a copy of this.
    pub frames: FrameTable,
    nodes: Vec<u32>,
    depths: Vec<u16>,
    parents: Vec<u32>,
    children: HashMap<(u32, FrameId), u32>,
}

impl NodePlaces {
    /// The root.
    pub const ROOT: u32 = 0;

    /// At most so many, and the root: stacks end above what is lighter.
    #[must_use]
    pub fn of(tree: &FlameDiff, most: usize) -> Self {
        let magnitudes: Vec<u64> = (0..tree.len()).map(|node| magnitude(tree, node)).collect();
        let threshold = threshold(&magnitudes, most);
        let mut places = Self {
            frames: tree.frames.clone(),
            ..Self::default()
        };
        let mut path: Vec<u32> = Vec::new();
        for (node, &magnitude) in magnitudes.iter().enumerate() {
            // A parent is never lighter than a child, so what stays is connected; but sums of what is
            // less than nothing may be.
            let depth = usize::from(tree.depth[node]);
            let is_place = node == 0 || (magnitude >= threshold && path.len() >= depth);
            path.truncate(depth);
            if !is_place {
                continue;
            }
            let place = places.nodes.len() as u32;
            let parent = path.last().copied().unwrap_or(Self::ROOT);
            if node > 0 {
                places.children.insert((parent, tree.frame[node]), place);
            }
            places.nodes.push(node as u32);
            places.depths.push(tree.depth[node]);
            places.parents.push(parent);
            path.push(place);
        }
        places
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no tree.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// By place its node in the tree.
    #[must_use]
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// By place the distance to the root.
    #[must_use]
    pub fn depths(&self) -> &[u16] {
        &self.depths
    }

    /// By place the one above it, which has the smaller number; the root has itself.
    #[must_use]
    pub fn parents(&self) -> &[u32] {
        &self.parents
    }

    /// Where a frame leads from a place; `None` where there is none.
    #[must_use]
    pub fn child(&self, place: u32, frame: FrameId) -> Option<u32> {
        self.children.get(&(place, frame)).copied()
    }

    /// The last place on the way of a stack.
    #[must_use]
    pub fn end_of(&self, root_first: impl IntoIterator<Item = FrameId>) -> u32 {
        let mut place = Self::ROOT;
        for frame in root_first {
            let Some(child) = self.child(place, frame) else {
                return place;
            };
            place = child;
        }
        place
    }
}

fn magnitude(tree: &FlameDiff, node: usize) -> u64 {
    let (before, after) = (tree.before[node].total, tree.after[node].total);
    before.unsigned_abs().max(after.unsigned_abs())
}

/// The magnitude from which nodes are places.
fn threshold(magnitudes: &[u64], most: usize) -> u64 {
    if magnitudes.len() <= most {
        return 0;
    }
    let mut magnitudes = magnitudes.to_vec();
    let (_, &mut threshold, _) =
        magnitudes.select_nth_unstable_by(most, |left, right| right.cmp(left));
    // Those of just this weight would be too many.
    threshold.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flame_builder::FlameTreeBuilder;
    use crate::frame_kind::FrameKind;

    #[test]
    fn stacks_end_where_the_tree_does() {
        let mut builder = FlameTreeBuilder::new();
        let names = ["main", "parse", "alloc", "rare"];
        let [main, parse, alloc, rare] =
            names.map(|name| builder.frames.intern(name, "", "", FrameKind::Go, 0));
        builder.add_stack([main, parse, alloc], 80);
        builder.add_stack([main, alloc], 19);
        builder.add_stack([main, rare], 1);
        let tree = builder.finish();
        let diff = FlameDiff::new(&tree, &tree, 0);
        let end_of = |places: &NodePlaces, stack: &[&str]| {
            let mut frames = places.frames.clone();
            let stack = stack.iter();
            let stack: Vec<FrameId> = stack
                .map(|name| frames.intern(name, "", "", FrameKind::Go, 0))
                .collect();
            let end = places.nodes()[places.end_of(stack) as usize] as usize;
            diff.frames.name(diff.frame[end]).to_owned()
        };
        let all = NodePlaces::of(&diff, 100);
        assert_eq!(
            (all.nodes(), all.depths()),
            (&[0, 1, 2, 3, 4, 5][..], &diff.depth[..])
        );
        assert_eq!(end_of(&all, &["main", "parse", "alloc"]), "alloc");
        assert_eq!(end_of(&all, &["main", "rare", "unheard"]), "rare");
        assert_eq!(end_of(&all, &["unheard", "main"]), "total");
        let heaviest = NodePlaces::of(&diff, 4);
        assert_eq!(heaviest.parents(), [0, 0, 1, 2]);
        assert_eq!(end_of(&heaviest, &["main", "rare"]), "main");
        assert_eq!(end_of(&heaviest, &["main", "alloc"]), "main");
        assert_eq!(end_of(&heaviest, &["main", "parse", "alloc"]), "alloc");
    }
}
