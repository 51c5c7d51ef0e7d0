//! Names for addresses that were stored without: the tables of stacks and locations of a block are
//! written anew, its samples never are.
//!
//! A new revision is there when the catalog says so, in one transaction. The manifest follows, and
//! only then do the files of the revision before go, with the last query that reads them: whenever
//! a manifest is behind the catalog, all files that it names are still there.

mod names;
mod pass;
mod revision;

use std::fmt::Debug;
use std::sync::Arc;

use candela_model::FrameKind;

pub(crate) use revision::settle_revisions;

/// What knows the names of one binary's code. It is asked from one thread, for every address once a
/// block.
pub trait BlockSymbolizer: Debug {
    /// The build id of the binary.
    fn build_id(&self) -> &str;

    /// What tells this source of names from others for the same binary: a block is not asked twice
    /// for the names of one source.
    fn source(&self) -> &str;

    /// The lines of code at a place, the innermost of inlined calls first; none when it has no
    /// name.
    fn lines(&self, place: &CodePlace) -> Vec<CodeLine>;

    /// Whether to stop as soon as possible. What is not done by then stays as it is.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Where an instruction is, in the words of the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePlace {
    /// Its address.
    pub address: u64,
    /// First address of the mapping.
    pub mapping_start: u64,
    /// End of the mapping, exclusive.
    pub mapping_limit: u64,
    /// Offset of `mapping_start` in the file, bytes.
    pub mapping_offset: u64,
}

/// A function at a source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeLine {
    /// The kind of code.
    pub kind: FrameKind,
    /// The readable name.
    pub function_name: Arc<str>,
    /// The name in the object file; empty when it is the same.
    pub system_name: Arc<str>,
    /// The source file; empty when unknown.
    pub file_name: Arc<str>,
    /// Line number; 0 when unknown.
    pub line: u32,
    /// Column number; 0 when unknown.
    pub column: u32,
    /// First line of the function; 0 when unknown.
    pub start_line: u32,
}

/// A binary that blocks have nameless addresses of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnsymbolizedBinary {
    /// Its build id, in lower case.
    pub build_id: String,
    /// A path that it was mapped from.
    pub mapping_file: String,
    /// Blocks with such addresses.
    pub blocks: u64,
    /// Nameless addresses, those of each block counted.
    pub locations: u64,
    /// Samples with at least one of them on their stack.
    pub samples: u64,
    /// The sources that were asked for the names of all blocks or some; those blocks in which none
    /// was are under the empty text.
    pub asked: Vec<String>,
}

/// What became of the blocks that had nameless addresses of a binary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resymbolized {
    /// Blocks with names that they did not have.
    pub renamed_blocks: u64,
    /// Addresses that have names now, those of each block counted.
    pub named_locations: u64,
    /// Addresses that the source does not know.
    pub unnamed_locations: u64,
    /// Blocks that could not be read or written; they are as they were.
    pub failed_blocks: u64,
}
