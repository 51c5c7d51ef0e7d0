//! Trees of bytes (`format=tree` of `/ingest`, `PROFILE_FORMAT_TREE` of queries).

use std::io::BufRead;

use candela_model::LabelSetId;
use candela_model::LocationId;
use candela_model::Profile;

use crate::error::ReadError;
use crate::inflate::read_inflated;
use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::options::ReadOptions;
use crate::pyroscope::nodes::Nodes;
use crate::report::Report;

const NAME: &str = "tree";

/// Reads a tree of frames: nodes in pre-order, each as name, value of the stacks that end there, and
/// number of children. A root without a name stands for everything and is no frame. No bytes are
/// no samples.
///
/// # Errors
/// When the input cannot be read, breaks off or exceeds a limit.
pub fn read_tree(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let bytes = read_inflated(input, options.limits.inflated_bytes())?;
    let mut stacks = NamedStacks::new(&options.limits);
    if !bytes.is_empty() {
        read_nodes(&bytes, options.limits.max_stack_depth, &mut stacks)?;
    }
    let name = options.profile_name.as_deref();
    let profile_type = naming::profile_type(("samples", "count"), ("", ""), name);
    Ok(stacks.finish(vec![profile_type], options))
}

fn read_nodes(
    bytes: &[u8],
    max_depth: usize,
    stacks: &mut NamedStacks<'_>,
) -> Result<(), ReadError> {
    let mut nodes = Nodes::new(NAME, bytes);
    let mut root_first: Vec<LocationId> = Vec::new();
    let mut roots = 0;
    while let Some(node) = nodes.next()? {
        if node.depth == 0 && node.name.is_empty() {
            roots = 1;
        } else {
            root_first.truncate(node.depth - roots);
            // One more than may be, so that the cut is seen where stacks are cut.
            if root_first.len() <= max_depth {
                let name = stacks.text(node.name);
                root_first.push(stacks.frame(&name)?);
            }
        }
        if node.value != 0 {
            stacks.add(0, &root_first, LabelSetId(0), node.count())?;
        }
    }
    stacks.note_trailing(nodes.bytes_left());
    Ok(())
}
