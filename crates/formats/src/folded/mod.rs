//! Folded stacks, one a line, root first: `main;work;hash 12`.

mod detect;
mod lines;
mod read;
mod write;

pub use crate::folded::read::read_folded;
pub use crate::folded::read::read_folded_diff;
pub use crate::folded::read::read_groups;
pub use crate::folded::read::read_lines;
pub use crate::folded::write::FoldedDiffOptions;
pub use crate::folded::write::FoldedOptions;
pub use crate::folded::write::write_folded;
pub use crate::folded::write::write_folded_diff;
use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::format::Writer;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Folded,
    name: "folded",
    extensions: &["folded", "collapsed"],
    description: "folded stacks, one sample type",
    keeps: &[Part::NegativeValues],
    detects: Some(detect::looks_folded),
    read: Some(|input, options| read_folded(input, options)),
    write: Some(Writer::Tree(|tree, _, output, options| {
        write_folded(tree, output, &options.folded)
    })),
};
