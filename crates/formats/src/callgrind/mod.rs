//! The text of callgrind: cost lines by function and calls with their inclusive cost, as described in
//! "Callgrind Format Specification" of the Valgrind manual. Xdebug and pprof write it, too.
//!
//! A call graph has no stacks. They are derived: [`order`] says which calls are followed and with
//! what share, [`distribute`] walks them.

mod distribute;
mod graph;
mod header;
mod names;
mod order;
mod read;
mod units;
mod write;
mod write_graph;

pub use crate::callgrind::read::read_callgrind;
pub use crate::callgrind::write::write_callgrind;
use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::format::Writer;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Callgrind,
    name: NAME,
    extensions: &["callgrind"],
    description: "callgrind call graph, for KCachegrind",
    keeps: &[
        Part::AllTypes,
        Part::Addresses,
        Part::Mappings,
        Part::SourceFiles,
        Part::Lines,
    ],
    detects: Some(read::looks_like_callgrind),
    read: Some(|input, options| read_callgrind(input, options)),
    write: Some(Writer::Profile(|profile, output, _| {
        write_callgrind(profile, output)
    })),
};

/// The format's name in messages.
const NAME: &str = "callgrind";
