//! Reports of Android's simpleperf (`simpleperf report-sample --protobuf`): named stacks of every
//! sample. Messages are those of `cmd_report_sample.proto` in the sources of simpleperf.

mod read;
mod tables;

use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
pub use crate::simpleperf::read::read_simpleperf;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Simpleperf,
    name: NAME,
    extensions: &["trace"],
    description: "report of Android's simpleperf, one series an event",
    keeps: &[
        Part::AllTypes,
        Part::SampleLabels,
        Part::SampleTimes,
        Part::Window,
        Part::Period,
        Part::Addresses,
        Part::Mappings,
        Part::SystemNames,
        Part::FrameKinds,
    ],
    detects: Some(|prefix| prefix.starts_with(MAGIC)),
    read: Some(|input, options| read_simpleperf(input, options)),
    write: None,
};

/// The format's name in messages.
const NAME: &str = "simpleperf";

const MAGIC: &[u8] = b"SIMPLEPERF";
