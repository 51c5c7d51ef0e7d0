//! Tries of bytes (`format=trie` of `/ingest`): folded stacks that share their starts.

use std::io::BufRead;

use candela_model::LabelSetId;
use candela_model::LocationId;
use candela_model::Profile;

use crate::error::ReadError;
use crate::inflate::read_inflated;
use crate::named_stacks::NamedStacks;
use crate::naming;
use crate::options::ReadOptions;
use crate::pyroscope::nodes::Node;
use crate::pyroscope::nodes::Nodes;
use crate::report::Report;

const NAME: &str = "trie";

/// Reads a trie of folded stacks: nodes in pre-order, each as the piece of text that it adds, the
/// value of the stack that ends there, and number of children. Pieces end anywhere, in the middle of a
/// character too. No bytes are no samples.
///
/// # Errors
/// When the input cannot be read, breaks off or exceeds a limit.
pub fn read_trie(
    input: impl BufRead,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let bytes = read_inflated(input, options.limits.inflated_bytes())?;
    let max_depth = options.limits.max_stack_depth;
    let mut stacks = NamedStacks::new(&options.limits);
    if !bytes.is_empty() {
        let mut nodes = Nodes::new(NAME, &bytes);
        let mut path = Path::default();
        while let Some(node) = nodes.next()? {
            path.enter(&node, max_depth, &mut stacks)?;
            if node.value != 0 {
                path.add_value(&node, max_depth, &mut stacks)?;
            }
        }
        stacks.note_trailing(nodes.bytes_left());
    }
    let name = options.profile_name.as_deref();
    let profile_type = naming::profile_type(("samples", "count"), ("", ""), name);
    Ok(stacks.finish(vec![profile_type], options))
}

/// The text from the root to a node, as frames as far as these have ended.
#[derive(Debug, Default)]
struct Path {
    text: Vec<u8>,
    /// How long the text was before each node on the way.
    starts: Vec<usize>,
    /// Frames with the position behind their semicolon.
    frames: Vec<(LocationId, usize)>,
    root_first: Vec<LocationId>,
}

impl Path {
    /// Goes on to a node, back to its parent first.
    fn enter(
        &mut self,
        node: &Node<'_>,
        max_depth: usize,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), ReadError> {
        if let Some(&start) = self.starts.get(node.depth) {
            self.text.truncate(start);
            self.starts.truncate(node.depth);
        }
        self.starts.push(self.text.len());
        while self
            .frames
            .pop_if(|(_, end)| *end > self.text.len())
            .is_some()
        {}
        let added = self.text.len();
        self.text.extend_from_slice(node.name);
        for position in added..self.text.len() {
            // One more than may be, so that the cut is seen where stacks are cut.
            if self.text[position] == b';' && self.frames.len() <= max_depth {
                let name = stacks.text(&self.text[self.frame_start()..position]);
                let location = stacks.frame(&name)?;
                self.frames.push((location, position + 1));
            }
        }
        Ok(())
    }

    fn add_value(
        &mut self,
        node: &Node<'_>,
        max_depth: usize,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<(), ReadError> {
        self.root_first.clear();
        let ended = self.frames.iter().map(|&(location, _)| location);
        self.root_first.extend(ended);
        let last = &self.text[self.frame_start()..];
        if !last.is_empty() && self.frames.len() <= max_depth {
            let name = stacks.text(last);
            self.root_first.push(stacks.frame(&name)?);
        }
        stacks.add(0, &self.root_first, LabelSetId(0), node.count())
    }

    fn frame_start(&self) -> usize {
        self.frames.last().map_or(0, |&(_, end)| end)
    }
}
