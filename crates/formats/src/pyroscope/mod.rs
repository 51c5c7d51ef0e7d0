//! What Pyroscope's clients push and ask for besides formats that others have too: trees and tries
//! of bytes, and flame graphs in levels.

mod document;
mod flamebearer;
mod flamebearer_diff;
mod flamebearer_read;
mod name_tree;
mod nodes;
mod tree_read;
mod tree_write;
mod trie_read;

use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::format::Writer;
pub use crate::pyroscope::document::FlameDocument;
pub use crate::pyroscope::document::Graph;
pub use crate::pyroscope::document::Timeline;
pub use crate::pyroscope::document::write_flamebearer;
pub use crate::pyroscope::flamebearer::Flamebearer;
pub use crate::pyroscope::flamebearer_diff::FlamebearerDiff;
pub use crate::pyroscope::flamebearer_read::read_flamebearer;
pub use crate::pyroscope::tree_read::read_tree;
pub use crate::pyroscope::tree_write::tree_bytes;
pub use crate::pyroscope::trie_read::read_trie;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Flamebearer,
    name: "flamebearer",
    extensions: &["flamebearer.json"],
    description: "Pyroscope's flame graph JSON, one sample type",
    keeps: &[Part::Window],
    detects: Some(flamebearer_read::looks_like_flamebearer),
    read: Some(|input, options| read_flamebearer(input, options)),
    write: Some(Writer::Tree(|tree, profile_type, output, _| {
        write_flamebearer(tree, profile_type, output)
    })),
};
