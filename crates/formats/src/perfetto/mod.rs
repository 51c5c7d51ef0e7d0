//! Perfetto traces: packets of protobuf, `protos/perfetto/trace` of <https://github.com/google/perfetto>.

mod clocks;
mod counters;
mod facts;
mod fields;
mod heap;
mod heap_packets;
mod packets;
mod read;
mod samples;
mod sequence;
mod stacks;
mod write;
mod write_stacks;

use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::format::Writer;
pub use crate::perfetto::read::read_perfetto;
pub use crate::perfetto::write::write_perfetto;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Perfetto,
    name: NAME,
    extensions: &["pftrace", "perfetto-trace"],
    description: "Perfetto trace: stack samples and heap profiles",
    keeps: &[
        Part::AllTypes,
        Part::SampleTimes,
        Part::Window,
        Part::Period,
        Part::Addresses,
        Part::Mappings,
        Part::BuildIds,
        Part::SourceFiles,
        Part::Lines,
        Part::FrameKinds,
    ],
    detects: Some(packets::looks_like_perfetto),
    read: Some(|input, options| read_perfetto(input, options)),
    write: Some(Writer::Profile(|profile, output, _| {
        write_perfetto(profile, output)
    })),
};

/// The format's name in messages.
const NAME: &str = "perfetto";
