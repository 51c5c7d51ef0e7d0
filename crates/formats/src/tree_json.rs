//! A flame tree as nested JSON objects.

use std::io;
use std::io::Write;

use candela_model::FlameTree;
use serde_json::Value;

/// Writes `head`, an object, and trees as further members of it.
///
/// # Errors
/// When the sink fails.
pub fn write_trees_json(
    head: &Value,
    trees: &[(&str, &FlameTree)],
    mut output: impl Write,
) -> io::Result<()> {
    write_members(head, &mut output)?;
    for (name, tree) in trees {
        write!(output, ",\"{name}\":")?;
        write_tree(tree, &mut output)?;
    }
    output.write_all(b"}")
}

/// An object with at least one member, without its closing brace.
pub(crate) fn write_members(object: &Value, output: &mut impl Write) -> io::Result<()> {
    let text = object.to_string();
    let members = text.strip_suffix('}').expect("heads are objects");
    output.write_all(members.as_bytes())
}

/// The object of the root with all others inside, node by node from the pre-order columns: building
/// nested values would recurse as deep as the stacks are. A tree without nodes is `null`.
fn write_tree(tree: &FlameTree, output: &mut impl Write) -> io::Result<()> {
    if tree.frame.is_empty() {
        return output.write_all(b"null");
    }
    let mut open = 0;
    for node in 0..tree.len() {
        let depth = usize::from(tree.depth[node]);
        // A node at the depth of an open one ends it; `depth` nodes above stay open.
        let is_sibling = open > depth;
        while open > depth {
            output.write_all(b"]}")?;
            open -= 1;
        }
        if is_sibling {
            output.write_all(b",")?;
        }
        write_node(tree, node, output)?;
        open += 1;
    }
    for _ in 0..open {
        output.write_all(b"]}")?;
    }
    Ok(())
}

/// A node up to its opened list of children.
fn write_node(tree: &FlameTree, node: usize, output: &mut impl Write) -> io::Result<()> {
    let frame = tree.frames.get(tree.frame[node]);
    let mut text = |key: &str, id| {
        output.write_all(key.as_bytes())?;
        serde_json::to_writer(&mut *output, tree.frames.strings.get(id)).map_err(io::Error::from)
    };
    text("{\"name\":", frame.name)?;
    text(",\"file\":", frame.file)?;
    text(",\"mapping\":", frame.mapping)?;
    write!(
        output,
        ",\"kind\":\"{}\",\"line\":{},\"total\":{},\"self\":{},\"children\":[",
        frame.kind, frame.start_line, tree.total[node], tree.self_value[node],
    )
}

#[cfg(test)]
mod tests {
    use candela_model::FlameTreeBuilder;
    use candela_model::FrameKind;
    use serde_json::json;

    use super::*;

    fn json_of(tree: &FlameTree) -> Value {
        let mut bytes = Vec::new();
        let head = json!({"schema": "x"});
        write_trees_json(&head, &[("tree", tree)], &mut bytes).expect("memory takes it");
        let value: Value = serde_json::from_slice(&bytes).expect("valid JSON");
        assert_eq!(value["schema"], "x");
        value.get("tree").expect("the member").clone()
    }

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
        let value = json_of(&builder.finish());
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
        assert_eq!(json_of(&FlameTree::default()), Value::Null);
    }
}
