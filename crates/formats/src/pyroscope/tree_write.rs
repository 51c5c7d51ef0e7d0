//! Trees as the bytes of `PROFILE_FORMAT_TREE`.

use candela_model::FlameTree;

use crate::error::WriteError;
use crate::protobuf::writer::Message;
use crate::pyroscope::name_tree::NameTree;
use crate::pyroscope::name_tree::OTHER;

const NAME: &str = "tree";

/// Stands for the stacks without frames: the root, whose value they are, has no place for one.
const UNKNOWN: &str = "[unknown]";

/// A node that is still to be written.
enum Pending<'a> {
    Node(usize),
    Leaf(&'a str, i64),
}

/// The tree as bytes, nodes in pre-order from a root without a name: name with its length in front,
/// value of the stacks that end there, and number of children, all numbers as varints. About
/// `max_nodes` nodes (0: all); children that are lighter than the lightest of these become one
/// node named `other`.
///
/// # Errors
/// When the tree has negative values.
pub fn tree_bytes(tree: &FlameTree, max_nodes: usize) -> Result<Vec<u8>, WriteError> {
    let tree = NameTree::of(NAME, [tree])?;
    let smallest = tree.smallest_kept(max_nodes);
    let mut out = Message::default();
    let mut pending = vec![Pending::Node(0)];
    while let Some(next) = pending.pop() {
        let node = match next {
            Pending::Leaf(name, value) => {
                push(&mut out, name, value, 0);
                continue;
            }
            Pending::Node(node) => node,
        };
        let known = pending.len();
        let mut folded = 0_i64;
        for &child in &tree.nodes[node].children {
            let total = tree.nodes[child].total[0];
            if total < smallest || tree.name(child) == OTHER {
                folded = folded.saturating_add(total);
            } else {
                pending.push(Pending::Node(child));
            }
        }
        if folded != 0 {
            pending.push(Pending::Leaf(OTHER, folded));
        }
        let self_value = tree.nodes[node].self_value[0];
        if node != 0 {
            push(&mut out, tree.name(node), self_value, pending.len() - known);
            continue;
        }
        if self_value != 0 {
            pending.push(Pending::Leaf(UNKNOWN, self_value));
        }
        push(&mut out, "", 0, pending.len() - known);
    }
    Ok(out.bytes)
}

fn push(out: &mut Message, name: &str, value: i64, children: usize) {
    out.varint(name.len() as u64);
    out.bytes.extend_from_slice(name.as_bytes());
    out.varint(value.unsigned_abs());
    out.varint(children as u64);
}
