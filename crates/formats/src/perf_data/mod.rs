//! Recordings of Linux's `perf record`.
//!
//! The file is described by `tools/perf/Documentation/perf.data-file-format.txt` of the kernel's
//! sources, its records by `include/uapi/linux/perf_event.h` and
//! `tools/lib/perf/include/perf/event.h`.

mod attr;
mod bytes;
mod callchain;
mod collector;
mod compressed;
mod events;
mod features;
mod files;
mod header;
mod losses;
mod machine;
mod mappings;
mod own_symbols;
mod places;
mod profile;
mod queue;
mod read;
mod records;
mod resolver;
mod sample;
mod session;
mod texts;

use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
pub use crate::perf_data::read::read_perf_data;
pub use crate::perf_data::resolver::AddressResolver;
pub use crate::perf_data::resolver::CopiedStack;
pub use crate::perf_data::resolver::KernelIdentity;
pub use crate::perf_data::resolver::MappedBinary;
pub use crate::perf_data::resolver::MappedCode;
pub use crate::perf_data::resolver::ResolvedCode;
pub use crate::perf_data::resolver::ResolvedFrame;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::PerfData,
    name: NAME,
    extensions: &["data"],
    description: "perf.data of `perf record`, one series an event",
    keeps: &[
        Part::AllTypes,
        Part::SampleLabels,
        Part::SeriesLabels,
        Part::SampleTimes,
        Part::Window,
        Part::Period,
        Part::Addresses,
        Part::Mappings,
        Part::BuildIds,
        Part::FrameKinds,
    ],
    // Those of version 1 are known, too: the reader says what to do about them.
    detects: Some(|prefix| header::endian_of(prefix).is_some() || header::is_of_version_1(prefix)),
    read: Some(|input, options| read_perf_data(input, &PerfDataOptions::default(), None, options)),
    write: None,
};

/// The format's name in messages.
const NAME: &str = "perf-data";

/// What the reader of recordings is told besides the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerfDataOptions {
    /// Whether samples lose their times, and those with equal stack and labels are added up.
    pub drop_times: bool,
}
