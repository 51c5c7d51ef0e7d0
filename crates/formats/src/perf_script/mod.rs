//! The text of `perf script`. It has no grammar: fields come and go with options and versions.

mod clock;
mod event;
mod frame;
mod header;
mod known_stacks;
mod open_frames;
mod read;
mod samples;
mod write;

use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::format::Writer;
pub use crate::perf_script::read::read_perf_script;
pub use crate::perf_script::write::write_perf_script;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::PerfScript,
    name: NAME,
    extensions: &["perf.txt", "perf-script"],
    description: "text of perf script, a block per sample",
    keeps: &[Part::AllTypes, Part::SampleTimes, Part::Addresses],
    detects: Some(read::looks_like_perf_script),
    read: Some(|input, options| read_perf_script(input, options)),
    write: Some(Writer::Profile(|profile, output, _| {
        write::write_valid(profile, output)
    })),
};

/// The format's name in messages.
const NAME: &str = "perf-script";

/// A comment of ours, which gives an event the profile type that its name does not tell:
/// `# candela event NAME = TYPE`.
const EVENT_COMMENT: &str = " candela event ";
