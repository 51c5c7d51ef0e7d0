//! Dumps of Ruby's stackprof as JSON. Facts: <https://github.com/tmm1/stackprof> (version 1.2 of the
//! dump).

mod read;

use crate::format::Entry;
use crate::format::Format;
use crate::format::Part;
use crate::json_cursor::contains;
use crate::json_cursor::leading_keys;
pub use crate::stackprof::read::read_stackprof;

pub(crate) const ENTRY: Entry = Entry {
    format: Format::Stackprof,
    name: NAME,
    extensions: &["stackprof.json"],
    description: "dump of Ruby's stackprof as JSON",
    keeps: &[
        Part::SampleTimes,
        Part::Window,
        Part::Period,
        Part::SourceFiles,
        Part::Lines,
        Part::StartLines,
        Part::FrameKinds,
    ],
    detects: Some(looks_like_stackprof),
    read: Some(|input, options| read_stackprof(input, options)),
    write: None,
};

const NAME: &str = "stackprof";

fn looks_like_stackprof(prefix: &[u8]) -> bool {
    let keys = leading_keys(prefix);
    let has = |key: &str| keys.iter().any(|known| known == key);
    has("frames") && contains(prefix, "\"total_samples\"")
        || has("mode") && has("interval") && has("samples")
}
