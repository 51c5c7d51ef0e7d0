//! Traces of .NET (EventPipe): `NetTraceFormat.md` of <https://github.com/microsoft/perfview>, version 6,
//! and those for versions 3 to 5 beside it.

mod blocks;
mod cursor;
mod events;
mod metadata;
mod methods;
mod read;
mod samples;
mod threads;

use crate::format::Entry;
use crate::format::Format;
pub use crate::nettrace::read::read_nettrace;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Nettrace,
    name: NAME,
    extensions: &["nettrace", "netperf"],
    description: ".NET trace: thread time and allocations",
    // It is only read.
    keeps: &[],
    detects: Some(blocks::looks_like_nettrace),
    read: Some(|input, options| read_nettrace(input, options)),
    write: None,
};

/// The format's name in messages.
const NAME: &str = "nettrace";
