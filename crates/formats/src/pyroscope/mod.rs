//! What Pyroscope's clients push and ask for besides formats that others have too: trees and tries
//! of bytes, and flame graphs in levels.

mod name_tree;
mod nodes;
mod tree_read;
mod tree_write;
mod trie_read;

pub use crate::pyroscope::tree_read::read_tree;
pub use crate::pyroscope::tree_write::tree_bytes;
pub use crate::pyroscope::trie_read::read_trie;
