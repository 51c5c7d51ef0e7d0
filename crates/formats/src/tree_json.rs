//! A flame tree as nested JSON objects.

use std::fmt::Write;

use candela_model::FlameTree;
use serde_json::Value;

/// The object of the root with all others inside. Written node by node from the pre-order
/// columns, because building nested values would recurse as deep as the stacks are. A tree without nodes
/// is `null`.
#[must_use]
pub fn tree_json(tree: &FlameTree) -> String {
    if tree.frame.is_empty() {
        return "null".to_owned();
    }
    let mut out = String::with_capacity(tree.len() * 100);
    let mut open = 0;
    for node in 0..tree.len() {
        let depth = usize::from(tree.depth[node]);
        // A node at the depth of an open one ends it; `depth` nodes above stay open.
        let is_sibling = open > depth;
        while open > depth {
            out.push_str("]}");
            open -= 1;
        }
        if is_sibling {
            out.push(',');
        }
        write_node(tree, node, &mut out);
        open += 1;
    }
    for _ in 0..open {
        out.push_str("]}");
    }
    out
}

/// A node up to its opened list of children.
fn write_node(tree: &FlameTree, node: usize, out: &mut String) {
    let frame = tree.frames.get(tree.frame[node]);
    let text = |id| Value::from(tree.frames.strings.get(id));
    let _ = write!(
        out,
        "{{\"name\":{},\"file\":{},\"mapping\":{},\"kind\":\"{}\",\"line\":{},\"total\":{},\"self\":{},\"children\":[",
        text(frame.name),
        text(frame.file),
        text(frame.mapping),
        frame.kind,
        frame.start_line,
        tree.total[node],
        tree.self_value[node],
    );
}

#[cfg(test)]
mod tests {
    use candela_model::FlameTreeBuilder;
    use candela_model::FrameKind;
    use serde_json::json;

    use super::*;

    #[test]
    fn nesting_follows_the_depths() {
        let mut builder = FlameTreeBuilder::new();
        let mut frame = |name| {
            builder
                .frames
                .intern(name, "f.c", "/bin/\"x\"", FrameKind::Native, 7)
        };
        let (main, left, right) = (frame("main"), frame("left"), frame("right"));
        builder.add_stack([main, left, right], 5);
        builder.add_stack([main, right], 2);
        let value: Value = serde_json::from_str(&tree_json(&builder.finish())).expect("valid JSON");
        assert_eq!(value["name"], "total");
        assert_eq!(value["total"], 7);
        let main = &value["children"][0];
        assert_eq!(main["mapping"], "/bin/\"x\"");
        assert_eq!(main["children"][0]["children"][0]["self"], 5);
        assert_eq!(main["children"][1]["total"], 2);
        assert_eq!(main["children"][1]["children"], json!([]));
    }

    #[test]
    fn a_tree_without_nodes_is_null() {
        assert_eq!(tree_json(&FlameTree::default()), "null");
    }
}
