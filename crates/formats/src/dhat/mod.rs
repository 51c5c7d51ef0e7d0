//! What Valgrind's DHAT and the Rust crate `dhat` write. Facts: "DHAT: a dynamic heap analysis tool"
//! in Valgrind's manual and `dh_main.c` (file version 2).

mod frame;
mod read;

pub use crate::dhat::read::read_dhat;
use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::json_cursor::contains;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Dhat,
    name: NAME,
    extensions: &["dhat.json"],
    description: "heap profile of Valgrind's DHAT or the crate dhat",
    keeps: &[
        Part::AllTypes,
        Part::Window,
        Part::Addresses,
        Part::Mappings,
        Part::SourceFiles,
        Part::Lines,
        Part::Columns,
        Part::FrameKinds,
    ],
    detects: Some(|prefix| {
        prefix.trim_ascii_start().starts_with(b"{") && contains(prefix, "\"dhatFileVersion\"")
    }),
    read: Some(|input, options| read_dhat(input, options)),
    write: None,
};

const NAME: &str = "dhat";
