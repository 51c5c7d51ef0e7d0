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
mod universal;

use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
pub(crate) use crate::nettrace::blocks::is_gc_dump;
pub use crate::nettrace::read::read_nettrace;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Nettrace,
    name: NAME,
    extensions: &["nettrace", "netperf"],
    description: ".NET trace: thread time and allocations",
    keeps: &[
        Part::AllTypes,
        Part::SampleTimes,
        Part::Window,
        Part::Period,
        Part::Addresses,
        Part::Mappings,
        Part::SystemNames,
        Part::FrameKinds,
    ],
    detects: Some(blocks::looks_like_nettrace),
    read: Some(|input, options| read_nettrace(input, options)),
    write: None,
};

/// The format's name in messages.
const NAME: &str = "nettrace";
