//! Recordings of Java Flight Recorder: those of the virtual machine (JDK 9 and later) and of
//! async-profiler.
//!
//! A recording is a row of chunks, each complete in itself: events, the constants that they refer
//! to, and the metadata that says how both are written. Nothing but a few names is fixed, so all
//! reading goes by plans made from the metadata; what no sample needs is stepped over by its type.
//!
//! There is no published description of the format. Facts are from the sources of its writers and
//! of JDK Mission Control: <https://github.com/openjdk/jdk>, <https://github.com/openjdk/jmc>,
//! <https://github.com/async-profiler/async-profiler>.

mod chunk;
mod cursor;
mod events;
mod frame_cache;
mod kinds;
mod labels;
mod layout;
mod losses;
mod metadata;
mod names;
mod pools;
mod read;
mod resolver;
mod samples;
mod settings;
mod snapshot;

use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
pub use crate::jfr::read::read_jfr;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Jfr,
    name: NAME,
    extensions: &["jfr", "jfr.gz"],
    description: "Java Flight Recorder, all events that are samples",
    keeps: &[
        Part::AllTypes,
        Part::SampleLabels,
        Part::Links,
        Part::SampleTimes,
        Part::Window,
        Part::Period,
        Part::Lines,
        Part::FrameKinds,
    ],
    detects: Some(looks_like_jfr),
    read: Some(|input, options| read_jfr(input, &JfrOptions::default(), options)),
    write: None,
};

/// The format's name in messages.
const NAME: &str = "jfr";

/// What the reader of recordings is told besides the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JfrOptions {
    /// Samples of a thread in a second, for the values of `cpu` and `wall` of a recording that does not
    /// say its own interval. Without it, or with 0, they are 100.
    pub sample_rate_hz: Option<u32>,
    /// The labels of the contexts that events refer to: the `LabelsSnapshot` protobuf message that
    /// Pyroscope's Java agent sends as the part `labels`, plain or compressed. Empty is none.
    pub labels_snapshot: Vec<u8>,
    /// Whether samples lose their times, and those with equal stack, labels and span are added up:
    /// for continuous profiling, where the window is time enough and rows cost storage.
    pub drop_times: bool,
}

/// Whether the start of some input is the start of a recording.
fn looks_like_jfr(prefix: &[u8]) -> bool {
    prefix.starts_with(&chunk::MAGIC)
}
