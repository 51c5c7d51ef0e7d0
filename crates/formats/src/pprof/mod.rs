//! pprof: the protobuf format of <https://github.com/google/pprof/blob/main/proto/profile.proto>.
//!
//! Decoding is ours instead of generated code: a profile is read far more often than anything else
//! here, and it needs neither the intermediate structs nor an allocation per field.

mod counts;
mod id_map;
mod labels;
mod metadata;
mod raw;
mod read;
mod rows;
mod strings;
mod write;

use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::format::Writer;
pub use crate::pprof::counts::count_samples;
pub use crate::pprof::read::read_inflated_pprof;
pub use crate::pprof::read::read_pprof;
pub use crate::pprof::write::PprofOptions;
pub use crate::pprof::write::write_pprof;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Pprof,
    name: NAME,
    extensions: &["pb.gz", "pb", "pprof"],
    description: "pprof protobuf, all sample types",
    keeps: &[
        Part::AllTypes,
        Part::SampleLabels,
        Part::Links,
        Part::SampleTimes,
        Part::Window,
        Part::Period,
        Part::Addresses,
        Part::Mappings,
        Part::BuildIds,
        Part::SourceFiles,
        Part::Lines,
        Part::Columns,
        Part::StartLines,
        Part::SystemNames,
        Part::NegativeValues,
    ],
    detects: Some(raw::looks_like_pprof),
    read: Some(|input, options| read_pprof(input, options)),
    write: Some(Writer::Profile(|profile, output, options| {
        write::write_valid(profile, output, &options.pprof)
    })),
};

/// The format's name in messages.
const NAME: &str = "pprof";

/// Names of the labels that hold what the model keeps apart from labels.
const TRACE_ID_LABEL: &str = "trace_id";
const SPAN_ID_LABEL: &str = "span_id";
/// What Pyroscope's SDKs call the span id.
const OLD_SPAN_ID_LABEL: &str = "profile_id";
const TIME_LABEL: &str = "timestamp_ns";
