//! The call tree as indented text.

use std::io::Write;

use candela_model::FlameTree;
use candela_model::FrameKind;
use candela_model::ProfileType;

use crate::error::WriteError;
use crate::printable::printable;
use crate::top::describe_total;
use crate::units::format_share;
use crate::units::format_value;

/// How much of a tree to print.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeOptions {
    /// Leave out nodes with a smaller share of the total, 0 to 1; their value stays visible in
    /// what their parents have.
    pub min_share: f64,
    /// Deepest level to print; 0 prints all.
    pub max_depth: usize,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            min_share: 0.005,
            max_depth: 0,
        }
    }
}

/// Writes the tree, heaviest children first: total, share and self of each node, with its name
/// indented by depth. How many nodes were left out stands at the end.
///
/// # Errors
/// When the sink fails.
pub fn write_tree(
    tree: &FlameTree,
    profile_type: &ProfileType,
    options: &TreeOptions,
    mut output: impl Write,
) -> Result<(), WriteError> {
    let unit = &profile_type.sample_unit;
    let total = tree.root_total();
    let sum = format_value(total, unit);
    writeln!(output, "Total {}: {sum}", describe_total(profile_type))?;
    writeln!(output, "{:>10} {:>7} {:>10}  Name", "Cum", "Cum%", "Flat")?;
    let smallest = options.min_share * total.unsigned_abs() as f64;
    let is_shown = |node: usize| {
        let is_deep = options.max_depth != 0 && usize::from(tree.depth[node]) > options.max_depth;
        !is_deep && tree.total[node].unsigned_abs() as f64 >= smallest
    };
    let mut node = 1;
    while node < tree.len() {
        if !is_shown(node) {
            node = tree.subtree_end[node] as usize;
            continue;
        }
        let frame = tree.frames.get(tree.frame[node]);
        let kind = if frame.kind == FrameKind::Kernel {
            " [kernel]"
        } else {
            ""
        };
        writeln!(
            output,
            "{:>10} {:>7} {:>10}  {}{}{kind}",
            format_value(tree.total[node], unit),
            format_share(tree.total[node], total),
            format_value(tree.self_value[node], unit),
            "  ".repeat(usize::from(tree.depth[node]) - 1),
            printable(tree.frames.strings.get(frame.name)),
        )?;
        node += 1;
    }
    let hidden = (1..tree.len()).filter(|&node| !is_shown(node)).count();
    if hidden > 0 {
        writeln!(output, "{hidden} lighter or deeper nodes are not shown")?;
    }
    output.flush()?;
    Ok(())
}
