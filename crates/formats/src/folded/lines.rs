//! The stacks of a tree as sorted lines of text, one at a time: all of them together can be a thousand times as large as
//! the tree, because each repeats the names of its frames.

use std::cmp::Ordering;

use candela_model::FlameTree;
use candela_model::FrameId;
use candela_model::FrameKind;

use crate::folded::write::FoldedOptions;

/// Stands for a frame without a name and for a stack without frames: a line needs one name at least.
const UNKNOWN: &str = "[unknown]";

/// The next name of some lines, and whether they go on behind it: then its text has a semicolon, which names have not. So no
/// part that goes on is the beginning of another, after one that does not the line ends, and lines sort as their parts do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    /// The position among all parts by their texts.
    rank: u32,
    goes_on: bool,
}

/// The parts of a tree's lines.
struct Parts {
    /// By frame; empty for frames that no node has. The last one is for the stack without frames.
    names: Vec<String>,
    /// By frame and whether the line goes on.
    ranks: Vec<[u32; 2]>,
    /// By rank.
    name_of_rank: Vec<u32>,
}

/// The lines that have the same names so far.
struct Level {
    /// Each with the node of its last name, sorted.
    parts: Vec<(Part, u32)>,
    position: usize,
    /// The length of what they have in common.
    prefix: usize,
}

/// Calls `visit` with each line and its value, in the order of the lines' bytes. Frames of the same name are the same.
pub(super) fn for_each_line<E>(
    tree: &FlameTree,
    options: &FoldedOptions,
    mut visit: impl FnMut(&str, i64) -> Result<(), E>,
) -> Result<(), E> {
    if tree.frame.is_empty() {
        return Ok(());
    }
    let parts = Parts::new(tree, options);
    let mut levels = vec![parts.first_level(tree)];
    let mut line = String::new();
    while let Some(level) = levels.last_mut() {
        line.truncate(level.prefix);
        let Some((part, nodes)) = level.next_group() else {
            levels.pop();
            continue;
        };
        line.push_str(parts.name(part));
        if part.goes_on {
            line.push(';');
            let below = parts.level(tree, nodes, line.len());
            levels.push(below);
            continue;
        }
        let values = nodes.map(|node| tree.self_value[node]);
        visit(&line, values.fold(0, i64::saturating_add))?;
    }
    Ok(())
}

// === impl Parts ===

impl Parts {
    fn new(tree: &FlameTree, options: &FoldedOptions) -> Self {
        // Of a tree that was cut most frames are left over.
        let mut names = vec![String::new(); tree.frames.frames().len()];
        for &frame in &tree.frame {
            let name = &mut names[frame.index()];
            if name.is_empty() {
                *name = frame_name(tree, frame, options);
            }
        }
        names.push(UNKNOWN.to_owned());
        let used = (0..names.len()).filter(|&name| !names[name].is_empty());
        let mut sorted: Vec<(usize, bool)> = used
            .flat_map(|name| [(name, false), (name, true)])
            .collect();
        let order = |&(one, goes_on): &(usize, bool), &(other, other_goes_on): &(usize, bool)| {
            compare((&names[one], goes_on), (&names[other], other_goes_on))
        };
        sorted.sort_unstable_by(order);
        let mut ranks = vec![[0; 2]; names.len()];
        let mut name_of_rank: Vec<u32> = Vec::new();
        for group in sorted.chunk_by(|one, other| order(one, other).is_eq()) {
            for &(name, goes_on) in group {
                ranks[name][usize::from(goes_on)] = name_of_rank.len() as u32;
            }
            name_of_rank.push(group[0].0 as u32);
        }
        Self {
            names,
            ranks,
            name_of_rank,
        }
    }

    fn name(&self, part: Part) -> &str {
        &self.names[self.name_of_rank[part.rank as usize] as usize]
    }

    fn part(&self, name: usize, goes_on: bool) -> Part {
        Part {
            rank: self.ranks[name][usize::from(goes_on)],
            goes_on,
        }
    }

    fn first_level(&self, tree: &FlameTree) -> Level {
        let mut level = self.level(tree, std::iter::once(0), 0);
        if tree.self_value[0] != 0 {
            let unknown = self.part(self.names.len() - 1, false);
            level.parts.push((unknown, 0));
            level.parts.sort_unstable();
        }
        level
    }

    /// What follows on some nodes.
    fn level(&self, tree: &FlameTree, nodes: impl Iterator<Item = usize>, prefix: usize) -> Level {
        let mut parts: Vec<(Part, u32)> = Vec::new();
        for child in nodes.flat_map(|node| tree.children(node)) {
            let name = tree.frame[child].index();
            if tree.self_value[child] != 0 {
                parts.push((self.part(name, false), child as u32));
            }
            if tree.subtree_end[child] as usize > child + 1 {
                parts.push((self.part(name, true), child as u32));
            }
        }
        parts.sort_unstable();
        Level {
            parts,
            position: 0,
            prefix,
        }
    }
}

// === impl Level ===

impl Level {
    /// The next part, with the nodes of all frames of that name.
    fn next_group(&mut self) -> Option<(Part, impl Iterator<Item = usize> + '_)> {
        let rest = &self.parts[self.position..];
        let &(part, _) = rest.first()?;
        let length = rest.iter().take_while(|(other, _)| *other == part).count();
        self.position += length;
        let nodes = rest[..length].iter().map(|&(_, node)| node as usize);
        Some((part, nodes))
    }
}

/// The order of two names, each followed by a semicolon where the line goes on.
fn compare((one, one_goes_on): (&str, bool), (other, other_goes_on): (&str, bool)) -> Ordering {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let common = one.len().min(other.len());
    // A longer name has another byte there than a semicolon, so that nothing behind it matters.
    let next = |name: &[u8], goes_on: bool| {
        let byte = name.get(common).copied();
        byte.or_else(|| goes_on.then_some(b';'))
    };
    let by_common = one[..common].cmp(&other[..common]);
    by_common.then_with(|| next(one, one_goes_on).cmp(&next(other, other_goes_on)))
}

fn frame_name(tree: &FlameTree, frame: FrameId, options: &FoldedOptions) -> String {
    let mut name: String = tree
        .frames
        .name(frame)
        .chars()
        .map(|character| match character {
            ';' => ':',
            '\n' | '\r' => ' ',
            other => other,
        })
        .collect();
    if name.is_empty() {
        name.push_str(UNKNOWN);
    }
    if options.kind_suffix && tree.frames.get(frame).kind == FrameKind::Kernel {
        name.push_str("_[k]");
    }
    name
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    use candela_model::FlameTreeBuilder;

    use super::*;

    fn lines(tree: &FlameTree, options: &FoldedOptions) -> Vec<(String, i64)> {
        let mut lines = Vec::new();
        let Ok(()) = for_each_line(tree, options, |line, value| {
            lines.push((line.to_owned(), value));
            Ok::<(), Infallible>(())
        });
        lines
    }

    /// Every stack of up to three of these names, in a user's and in a kernel's file, beside a map of whole lines.
    #[test]
    fn lines_are_sorted_by_their_bytes_and_come_once() {
        let names = [
            "a", "a b", "a\u{1}", "a:", "a(b)", "a;", "a_[k]", "", UNKNOWN, "ä",
        ];
        for kind_suffix in [false, true] {
            let mut builder = FlameTreeBuilder::new();
            let mut expected: BTreeMap<String, i64> = BTreeMap::new();
            for depth in 0..4 {
                for number in 0..2 * names.len().pow(depth) {
                    let kind = match number < names.len().pow(depth) {
                        true => FrameKind::Native,
                        false => FrameKind::Kernel,
                    };
                    let path = (0..depth)
                        .map(|place| names[number / names.len().pow(place) % names.len()]);
                    // Some lines cancel out.
                    let value = if number % 7 == 0 { -3 } else { 3 };
                    let frames = path
                        .clone()
                        .map(|name| builder.frames.intern(name, "", "", kind, 0));
                    let frames: Vec<FrameId> = frames.collect();
                    builder.add_stack(frames, value);
                    let shown = path.map(|name| {
                        let name = if name.is_empty() { UNKNOWN } else { name };
                        let is_marked = kind_suffix && kind == FrameKind::Kernel;
                        format!(
                            "{}{}",
                            name.replace(';', ":"),
                            if is_marked { "_[k]" } else { "" }
                        )
                    });
                    let line = shown.collect::<Vec<String>>().join(";");
                    let line = if depth == 0 { UNKNOWN.to_owned() } else { line };
                    *expected.entry(line).or_default() += value;
                }
            }
            let expected: Vec<(String, i64)> = expected.into_iter().collect();
            let found = lines(&builder.finish(), &FoldedOptions { kind_suffix });
            assert!(expected.iter().any(|(_, value)| *value == 0));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn nothing_has_no_lines() {
        let options = FoldedOptions::default();
        assert_eq!(lines(&FlameTree::default(), &options), []);
        assert_eq!(lines(&FlameTreeBuilder::new().finish(), &options), []);
    }
}
